package gateway.jms;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.zip.InflaterInputStream;
import javax.jms.BytesMessage;
import javax.jms.JMSException;
import javax.jms.MapMessage;
import javax.jms.Message;
import javax.jms.ObjectMessage;
import javax.jms.StreamMessage;
import javax.jms.TextMessage;

/**
 * Checks the bytes of a message before the library decodes them.
 *
 * ActiveMQ's client allocates what a length in a message claims, inflates without a limit, and
 * decodes nested maps by recursion: four bytes from a publisher could end the process. Messages of
 * other libraries do not show their bytes; only the lengths that they tell are checked.
 */
final class ContentCheck {
    static final int MAX_NESTING = 64;
    private static final int MAX_SHARE = 8; // Java copies a body several times while it is read
    static final long MAX_BODY = Runtime.getRuntime().maxMemory() / MAX_SHARE;
    private static final int MIN_ENTRY = 3; // bytes: an empty name and a null
    // MarshallingSupport: the sizes of values by their type, 0 for other ones
    private static final int[] SIZES = {0, 1, 1, 2, 2, 4, 8, 8, 4};
    private static final int STRING = 9, BYTES = 10, MAP = 11, LIST = 12, BIG_STRING = 13;

    private final byte[] data;
    private final int end;
    private int position;

    private ContentCheck(byte[] data, int offset, int length) {
        this.data = data;
        position = offset;
        end = offset + length;
    }

    /** Throws when reading the body could take too much memory or stack. */
    static void checkBody(Message message) throws IOException, JMSException {
        byte[] content = bytesOf(message, "getContent");
        if (content == null) {
            if (message instanceof BytesMessage) {
                checkSize(((BytesMessage) message).getBodyLength());
            }
            return;
        }
        checkSize(content.length);
        if (isCompressed(message)) {
            content = inflate(message, content);
        }
        ContentCheck check = new ContentCheck(content, 0, content.length);
        if (content.length == 0 || message instanceof BytesMessage || message instanceof ObjectMessage) {
            return;
        }
        if (message instanceof TextMessage) {
            check.skip(check.i32());
        } else if (message instanceof MapMessage) {
            check.map(0);
        } else if (message instanceof StreamMessage) {
            while (check.position < check.end) {
                check.value(0);
            }
        }
    }

    /** Throws when reading the properties could take too much memory or stack. */
    static void checkProperties(Message message) throws IOException {
        byte[] content = bytesOf(message, "getMarshalledProperties");
        if (content != null) {
            checkSize(content.length);
            new ContentCheck(content, 0, content.length).map(0);
        }
    }

    static void checkSize(long size) throws IOException {
        if (size > MAX_BODY) {
            throw new IOException("is " + size + " bytes, limit " + MAX_BODY
                    + ", an eighth of Java's heap; raise -Xmx in jvm_options");
        }
    }

    /** Returns what an ActiveMQ message has marshalled; null for other messages. */
    static byte[] bytesOf(Message message, String getter) {
        if (!isActiveMq(message)) {
            return null;
        }
        try {
            Object content = message.getClass().getMethod(getter).invoke(message);
            if (content == null) {
                return null;
            }
            Class<?> type = content.getClass();
            byte[] data = (byte[]) type.getMethod("getData").invoke(content);
            int offset = (Integer) type.getMethod("getOffset").invoke(content);
            int length = (Integer) type.getMethod("getLength").invoke(content);
            return offset == 0 && length == data.length
                    ? data : java.util.Arrays.copyOfRange(data, offset, offset + length);
        } catch (ReflectiveOperationException other) {
            return null;
        }
    }

    static boolean isActiveMq(Message message) {
        return message.getClass().getName().startsWith("org.apache.activemq.command.");
    }

    private static boolean isCompressed(Message message) {
        try {
            return (Boolean) message.getClass().getMethod("isCompressed").invoke(message);
        } catch (ReflectiveOperationException other) {
            return false;
        }
    }

    private static byte[] inflate(Message message, byte[] content) throws IOException {
        int start = 0;
        if (message instanceof BytesMessage) { // the inflated length comes first
            int length = new ContentCheck(content, 0, content.length).i32();
            if (length < 0) {
                throw new IOException("a length of " + length);
            }
            checkSize(length);
            start = 4;
        }
        ByteArrayOutputStream out = new ByteArrayOutputStream(1 << 12);
        byte[] block = new byte[1 << 13];
        InputStream in = new InflaterInputStream(
                new ByteArrayInputStream(content, start, content.length - start));
        for (int read = in.read(block); read >= 0; read = in.read(block)) {
            out.write(block, 0, read);
            if (out.size() > MAX_BODY) {
                throw new IOException("inflates to more than " + MAX_BODY
                        + " bytes, an eighth of Java's heap");
            }
        }
        return out.toByteArray();
    }

    private int i32() throws IOException {
        skip(4);
        return data[position - 4] << 24 | (data[position - 3] & 0xFF) << 16
                | (data[position - 2] & 0xFF) << 8 | data[position - 1] & 0xFF;
    }

    private int u16() throws IOException {
        skip(2);
        return (data[position - 2] & 0xFF) << 8 | data[position - 1] & 0xFF;
    }

    private void skip(int size) throws IOException {
        if (size < -1 || size > end - position) {
            throw new IOException("a length of " + size + " with " + (end - position) + " bytes left");
        }
        position += Math.max(size, 0); // -1 is a null
    }

    private int count(int smallest) throws IOException {
        int count = i32();
        if (count > (end - position) / smallest) {
            throw new IOException("a count of " + count + " with " + (end - position) + " bytes left");
        }
        return count;
    }

    private void map(int depth) throws IOException {
        for (int left = count(MIN_ENTRY); left > 0; left--) {
            skip(u16());
            value(depth);
        }
    }

    private void value(int depth) throws IOException {
        skip(1);
        int type = data[position - 1];
        if (type >= 0 && type < SIZES.length) {
            skip(SIZES[type]);
        } else if (type == STRING) {
            skip(u16());
        } else if (type == BYTES || type == BIG_STRING) {
            skip(i32());
        } else if (type == MAP || type == LIST) {
            if (depth >= MAX_NESTING) {
                throw new IOException("values are nested deeper than " + MAX_NESTING);
            }
            if (type == MAP) {
                map(depth + 1);
            } else {
                for (int left = count(1); left > 0; left--) {
                    value(depth + 1);
                }
            }
        } else {
            throw new IOException("a value of the unknown type " + type);
        }
    }
}
