package gateway.jms;

import java.util.ArrayDeque;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.Session;

/**
 * Drains the consumers of one session in batches, and acknowledges messages that Python settled.
 *
 * One lock guards the session. A thread that settles only stores the count, and the next drain
 * acknowledges: a server may take long to answer, and that thread serves other sources too.
 */
public final class Receiver {
    public static final int CLIENT = 0, EACH = 1, TRANSACTED = 2;
    private static final int IDLE_SLICE = 100, SLICE = 10, SHORT_SLICE = 2; // milliseconds

    private final Session session;
    private final MessageConsumer[] consumers;
    private final int mode;
    private final ConnectionMonitor monitor;
    private final BatchPacker packer;
    private final ReceiveWindow window;
    private final ReentrantLock lock = new ReentrantLock();
    private final AtomicLong settled = new AtomicLong();
    private final ArrayDeque<Message> unacknowledged = new ArrayDeque<>(); // EACH
    private Message last; // CLIENT: any message acknowledges all
    private long delivered; // wanted messages handed to Python
    private long acknowledged;
    private boolean consumed; // messages were consumed since the last acknowledgement
    private int current; // index of the consumer that receives next
    private volatile boolean closing;

    public Receiver(
            Session session, List<MessageConsumer> consumers, int mode, ConnectionMonitor monitor,
            boolean deserialize, long unreadBytes) {
        this.session = session;
        this.consumers = consumers.toArray(new MessageConsumer[0]);
        this.mode = mode;
        this.monitor = monitor;
        this.packer = new BatchPacker(deserialize);
        this.window = monitor.receiveWindow(this.consumers, unreadBytes, mode != TRANSACTED);
    }

    /** Returns the waiting messages, packed, or null after `millis` without a message. */
    public byte[] drain(int most, int bytes, long millis) throws JMSException {
        lock.lock();
        try {
            acknowledge();
            Message message = awaitMessage(millis);
            if (message == null) {
                return null;
            }
            packer.start();
            while (message != null) {
                packer.add(message, current);
                record(message);
                message = packer.count() < most && packer.size() < bytes ? poll() : null;
            }
            current = (current + 1) % consumers.length;
            return packer.finish();
        } catch (RuntimeException | OutOfMemoryError error) {
            monitor.fail(error);
            throw new JMSException(ConnectionMonitor.describe(error));
        } finally {
            lock.unlock();
        }
    }

    /** Discards unwanted messages of the last drain; `positions` ascend. */
    public void discard(int[] positions, int count) throws JMSException {
        lock.lock();
        try {
            delivered -= positions.length;
            if (mode == EACH) {
                discardEach(positions, count);
            }
            acknowledge();
        } finally {
            lock.unlock();
        }
    }

    private void discardEach(int[] positions, int count) throws JMSException {
        ArrayDeque<Message> wanted = new ArrayDeque<>();
        int next = positions.length - 1;
        for (int position = count - 1; position >= 0; position--) {
            Message message = unacknowledged.pollLast();
            if (next >= 0 && positions[next] == position) {
                message.acknowledge();
                next--;
            } else {
                wanted.addFirst(message);
            }
        }
        unacknowledged.addAll(wanted);
    }

    /** Notes that the first `total` wanted messages since the start are settled. */
    public void settled(long total) {
        settled.accumulateAndGet(total, Math::max);
    }

    /**
     * Ends draining, and acknowledges settled messages, waiting at most `millis`. Returns whether
     * every message is acknowledged.
     */
    public boolean finish(long millis) throws InterruptedException {
        closing = true;
        Thread last = new Thread(this::acknowledgeLast, "gateway-jms-finish");
        last.setDaemon(true);
        last.start();
        last.join(millis);
        return !last.isAlive() && acknowledged == delivered;
    }

    private void acknowledgeLast() {
        lock.lock();
        try {
            acknowledge();
        } catch (JMSException | RuntimeException error) {
            monitor.fail(error);
        } finally {
            lock.unlock();
        }
    }

    /** Ends the wait of the library's reading thread for room, before the connection is closed. */
    public void release() {
        window.end();
    }

    /** Returns the bytes of the largest message that ActiveMQ's library has read; else 0. */
    public long largest() {
        return window.largest();
    }

    /** Returns the number of acknowledged messages; for tests. */
    public long acknowledged() {
        return acknowledged;
    }

    private void acknowledge() throws JMSException {
        long target = settled.get();
        try {
            if (mode == EACH) {
                for (; acknowledged < target; acknowledged++) {
                    monitor.check();
                    unacknowledged.poll().acknowledge();
                }
            } else if (consumed && target == delivered) {
                monitor.check();
                if (mode == CLIENT) {
                    last.acknowledge();
                } else {
                    session.commit();
                }
                consumed = false;
                acknowledged = target;
            }
        } catch (JMSException | RuntimeException error) {
            monitor.fail(error);
            throw error;
        }
    }

    private void record(Message message) throws JMSException {
        window.received(message);
        delivered++;
        consumed = true;
        if (mode == EACH) {
            unacknowledged.add(message);
        } else {
            last = message;
        }
    }

    private Message awaitMessage(long millis) throws JMSException {
        long end = System.nanoTime() + millis * 1_000_000;
        while (!closing) {
            monitor.check();
            Message message = poll();
            if (message != null) {
                return message;
            }
            long left = (end - System.nanoTime()) / 1_000_000;
            if (left <= 0) {
                return null;
            }
            int slice = consumers.length > 1 ? SHORT_SLICE : consumed ? SLICE : IDLE_SLICE;
            message = consumers[current].receive(Math.min(left, slice));
            if (message != null) {
                return message;
            }
            acknowledge();
        }
        return null;
    }

    /** Returns a waiting message of the current consumer or of one after it, or null. */
    private Message poll() throws JMSException {
        for (int tried = 0; tried < consumers.length; tried++) {
            Message message = consumers[current].receiveNoWait();
            if (message != null) {
                return message;
            }
            current = (current + 1) % consumers.length;
        }
        window.empty();
        return null;
    }
}
