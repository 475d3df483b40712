"""Looking after a home: is everything in it whole, and what can go?"""
