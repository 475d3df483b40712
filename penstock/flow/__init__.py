"""From changes to messages: the steps that the Hub and the Spark pipeline share."""
