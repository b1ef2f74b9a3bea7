package gateway.jms;

import java.util.LinkedHashMap;
import java.util.Map;
import javax.jms.Connection;
import javax.jms.Destination;
import javax.jms.ExceptionListener;
import javax.jms.JMSException;
import javax.jms.MessageConsumer;
import javax.jms.ResourceAllocationException;
import javax.jms.TemporaryQueue;

/** Keeps the first failure of a connection, also of one that the provider repairs by itself. */
public final class ConnectionMonitor implements ExceptionListener {
    static final String NO_ROOM = "no-room\n"; // begins the fault of such a message
    private static final int MAX_REMEMBERED = 10_000;
    private static final Map<String, Destination> TEMPORARY =
            new LinkedHashMap<String, Destination>(64, 0.75f, true) {
                @Override
                protected boolean removeEldestEntry(Map.Entry<String, Destination> eldest) {
                    return size() > MAX_REMEMBERED;
                }
            };

    private final Connection connection;
    private volatile String failure;
    private volatile boolean full; // the broker had no room, and ended the connection

    public ConnectionMonitor(Connection connection) throws JMSException {
        this.connection = connection;
        connection.setExceptionListener(this);
    }

    @Override
    public void onException(JMSException error) {
        fail(error);
    }

    void fail(Throwable error) {
        if (failure == null) {
            full = isFull(error);
            failure = describe(error);
        }
    }

    /** Returns why a message without an answer is to be sent again. */
    String retryFault() {
        return full ? NO_ROOM + failure : "retry";
    }

    static boolean isFull(Throwable error) {
        return error instanceof ResourceAllocationException
                || (error != null && isFull(error.getCause()));
    }

    /** Returns the text of the first failure, or null. */
    public String failure() {
        return failure;
    }

    void check() throws JMSException {
        if (failure != null) {
            throw new JMSException(failure);
        }
    }

    ReceiveWindow receiveWindow(MessageConsumer[] consumers, long bytes, boolean waits) {
        return new ReceiveWindow(connection, consumers, bytes, waits);
    }

    /** Creates a temporary queue; returns whether the broker answers. A refusal is an answer. */
    boolean answers() {
        if (failure != null) {
            return false;
        }
        try {
            javax.jms.Session session = connection.createSession(false, 1);
            try {
                TemporaryQueue queue = session.createTemporaryQueue();
                queue.delete();
            } finally {
                session.close();
            }
            return failure == null;
        } catch (javax.jms.JMSSecurityException refused) {
            return failure == null;
        } catch (JMSException | RuntimeException error) {
            fail(error);
            return false;
        }
    }

    /** Closes the connection, waiting at most `millis`. */
    public static void close(Connection connection, long millis) throws InterruptedException {
        Thread closer = new Thread(() -> {
            try {
                connection.close();
            } catch (JMSException | RuntimeException ignored) {
                return; // already closed, or broken
            }
        }, "gateway-jms-close");
        closer.setDaemon(true);
        closer.start();
        closer.join(millis);
    }

    static String describe(Throwable error) {
        String name = error.getClass().getName();
        return name.substring(name.lastIndexOf('.') + 1) + ": " + error.getMessage();
    }

    static void remember(String name, Destination temporary) {
        synchronized (TEMPORARY) {
            TEMPORARY.put(name, temporary);
        }
    }

    static Destination recall(String name) {
        synchronized (TEMPORARY) {
            return TEMPORARY.get(name);
        }
    }
}
