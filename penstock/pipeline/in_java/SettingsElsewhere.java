package penstock;

import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;
import scala.Option;
import scala.runtime.AbstractFunction0;

/** The settings that a thread of Spark goes by: those of its session, or, if it has none, ours.
 *
 * Spark takes its defaults then. The threads that serve the state of a stateful task have no session.
 */
public class SettingsElsewhere extends AbstractFunction0 {
    private final SQLConf elsewhere = new SQLConf();

    public void set(String name, String value) {
        elsewhere.setConfString(name, value);
    }

    public Object apply() {
        Option session = SparkSession.getActiveSession();
        if (session.isDefined()) {
            SparkSession active = (SparkSession) session.get();
            if (!active.sparkContext().isStopped()) {
                return active.sessionState().conf();
            }
        }
        return elsewhere;
    }
}
