package gateway.jms;

import java.util.ArrayDeque;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.Session;

/**
 * Drains the consumers of one session in batches, and acknowledges what Python has settled.
 *
 * The session is used under one lock. Who settles while a drain waits leaves the count behind,
 * and the drain acknowledges within milliseconds; else the settling thread does it by itself.
 */
public final class Receiver {
    public static final int CLIENT = 0, EACH = 1, TRANSACTED = 2;
    private static final int LONG_SLICE = 100, SLICE = 10, SHORT_SLICE = 2; // milliseconds

    private final Session session;
    private final MessageConsumer[] consumers;
    private final int mode;
    private final Watch watch;
    private final Packer packer;
    private final ReentrantLock lock = new ReentrantLock();
    private final AtomicLong due = new AtomicLong();
    private final ArrayDeque<Message> unacknowledged = new ArrayDeque<>(); // EACH
    private Message last; // CLIENT: any message acknowledges all
    private long numbered; // messages handed to Python that it wants
    private long acknowledged;
    private boolean dirty; // something was consumed since the last acknowledgement
    private int turn;
    private volatile long seen;
    private volatile boolean closing;

    public Receiver(
            Session session, List<MessageConsumer> consumers, int mode, Watch watch, boolean trusting) {
        this.session = session;
        this.consumers = consumers.toArray(new MessageConsumer[0]);
        this.mode = mode;
        this.watch = watch;
        this.packer = new Packer(trusting);
    }

    /** What is there, packed; null after `millis` without a message. */
    public byte[] drain(int most, int bytes, long millis) throws JMSException {
        lock.lock();
        try {
            settle();
            Message message = first(millis);
            if (message == null) {
                return null;
            }
            packer.start();
            while (message != null) {
                packer.add(message, turn);
                take(message);
                message = packer.count() < most && packer.size() < bytes ? next() : null;
            }
            turn = (turn + 1) % consumers.length;
            return packer.finish();
        } catch (RuntimeException | OutOfMemoryError error) {
            watch.fail(error);
            throw new JMSException(Watch.describe(error));
        } finally {
            lock.unlock();
            catchUp();
        }
    }

    /** Messages of the last drain, by ascending position, that nobody wants. */
    public void discard(int[] positions, int count) throws JMSException {
        lock.lock();
        try {
            numbered -= positions.length;
            if (mode == EACH) {
                discardEach(positions, count);
            }
            settle();
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

    /** The first `total` wanted messages since the start are finished. */
    public void settled(long total) {
        due.accumulateAndGet(total, Math::max);
        catchUp();
    }

    /** Acknowledges what is due, if the session is free within `millis`, and drains no more. */
    public void finish(long millis) throws InterruptedException {
        closing = true;
        if (lock.tryLock(millis, TimeUnit.MILLISECONDS)) {
            try {
                settle();
            } catch (JMSException error) {
                watch.fail(error);
            } finally {
                lock.unlock();
            }
        }
    }

    /** Messages acknowledged so far; for tests. */
    public long acknowledged() {
        return acknowledged;
    }

    private void catchUp() {
        while (due.get() != seen && !lock.isHeldByCurrentThread() && lock.tryLock()) {
            try {
                settle();
            } catch (JMSException error) {
                return; // noted, and the next drain says it
            } finally {
                lock.unlock();
            }
        }
    }

    private void settle() throws JMSException {
        long target = due.get();
        seen = target;
        try {
            if (mode == EACH) {
                for (; acknowledged < target; acknowledged++) {
                    watch.check();
                    unacknowledged.poll().acknowledge();
                }
            } else if (dirty && target == numbered) {
                watch.check();
                if (mode == CLIENT) {
                    last.acknowledge();
                } else {
                    session.commit();
                }
                dirty = false;
                acknowledged = target;
            }
        } catch (JMSException | RuntimeException error) {
            watch.fail(error);
            throw error;
        }
    }

    private void take(Message message) {
        numbered++;
        dirty = true;
        if (mode == EACH) {
            unacknowledged.add(message);
        } else {
            last = message;
        }
    }

    private Message first(long millis) throws JMSException {
        long end = System.nanoTime() + millis * 1_000_000;
        while (!closing) {
            watch.check();
            Message message = next();
            if (message != null) {
                return message;
            }
            long left = (end - System.nanoTime()) / 1_000_000;
            if (left <= 0) {
                return null;
            }
            int slice = consumers.length > 1 ? SHORT_SLICE : dirty ? SLICE : LONG_SLICE;
            message = consumers[turn].receive(Math.min(left, slice));
            if (message != null) {
                return message;
            }
            settle();
        }
        return null;
    }

    /** The next message that is there, of the consumer whose turn it is or of the ones after it. */
    private Message next() throws JMSException {
        for (int tried = 0; tried < consumers.length; tried++) {
            Message message = consumers[turn].receiveNoWait();
            if (message != null) {
                return message;
            }
            turn = (turn + 1) % consumers.length;
        }
        return null;
    }
}
