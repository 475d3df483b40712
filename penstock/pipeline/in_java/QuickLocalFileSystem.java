package penstock;

import java.io.IOException;
import java.nio.file.Files;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/** Hadoop's local files, without a process for each of them.
 *
 * Without its native library Hadoop starts a process, chmod, for every file that it makes: twelve in
 * every batch. Java can set permissions itself.
 */
public class QuickLocalFileSystem extends LocalFileSystem {
    public QuickLocalFileSystem() {
        super(new Raw());
    }

    public static class Raw extends RawLocalFileSystem {
        public void setPermission(Path path, FsPermission permission) throws IOException {
            if (permission.getStickyBit()) {
                super.setPermission(path, permission);
            } else {
                // A directory's bit that hands its group on must stay: homes may be for a group.
                java.nio.file.Path file = pathToFile(path).toPath();
                int mode = ((Integer) Files.getAttribute(file, "unix:mode")).intValue();
                int kept = mode & 06000;
                Files.setAttribute(file, "unix:mode", Integer.valueOf(kept | permission.toShort()));
            }
        }
    }
}
