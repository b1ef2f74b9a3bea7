package gateway.jms;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.HashSet;
import java.util.Set;
import javax.jms.Connection;
import javax.jms.JMSException;
import javax.jms.MessageConsumer;

/**
 * Bounds the bytes of the messages that ActiveMQ's library has read and nobody has received.
 *
 * ActiveMQ counts messages that it sends ahead, and not their bytes. The library calls a listener
 * in the thread that reads the socket; while that thread waits here, TCP slows the broker. Where
 * the session needs answers of the broker to go on (transactions), the connection fails instead,
 * unless only two messages wait.
 * Other libraries have no such listener, and this class no effect.
 */
final class ReceiveWindow implements InvocationHandler {
    private static final String LISTENER = "org.apache.activemq.transport.TransportListener";
    private static final String DISPATCH = "org.apache.activemq.command.MessageDispatch";
    private static final String MESSAGE = "org.apache.activemq.command.Message";

    // With a prefetch of one, the second message can arrive before the first is noted as received.
    private static final int LEAST = 2;

    private final long limit;
    private final boolean waits;
    private final Set<Object> consumers = new HashSet<>(); // ids: the library has others, unread here
    private Method getConsumer, getMessage, getSize; // null without effect
    private long held, largest;
    private int messages; // held ones
    private boolean ended;

    ReceiveWindow(
            Connection connection, MessageConsumer[] consumers, long limit, boolean waits) {
        this.limit = limit;
        this.waits = waits;
        ClassLoader loader = connection.getClass().getClassLoader();
        try {
            Class<?> listener = Class.forName(LISTENER, false, loader);
            Object proxy = Proxy.newProxyInstance(loader, new Class<?>[] {listener}, this);
            Method add = connection.getClass().getMethod("addTransportListener", listener);
            getSize = Class.forName(MESSAGE, false, loader).getMethod("getSize");
            Class<?> dispatch = Class.forName(DISPATCH, false, loader);
            getConsumer = dispatch.getMethod("getConsumerId");
            for (MessageConsumer each : consumers) {
                this.consumers.add(each.getClass().getMethod("getConsumerId").invoke(each));
            }
            getMessage = dispatch.getMethod("getMessage");
            add.invoke(connection, proxy);
        } catch (ReflectiveOperationException | LinkageError absent) {
            getMessage = null;
        }
    }

    @Override
    public Object invoke(Object proxy, Method method, Object[] arguments) throws Exception {
        switch (method.getName()) {
            case "onCommand":
                if (getMessage.getDeclaringClass().isInstance(arguments[0])
                        && consumers.contains(getConsumer.invoke(arguments[0]))) {
                    arrived(getMessage.invoke(arguments[0]));
                }
                return null;
            case "hashCode":
                return System.identityHashCode(proxy);
            case "equals":
                return proxy == arguments[0];
            case "toString":
                return "gateway.jms.ReceiveWindow";
            default:
                return null;
        }
    }

    private synchronized void arrived(Object message) throws Exception {
        if (message == null) {
            return;
        }
        int size = (Integer) getSize.invoke(message);
        held += size;
        largest = Math.max(largest, size);
        messages++;
        if (held > limit && messages > LEAST && !waits) {
            throw new IllegalStateException("more than " + limit + " bytes were sent ahead");
        }
        while (waits && held > limit) {
            if (ended) { // fails the connection: nothing more is read into memory
                throw new IllegalStateException("the gateway closes the connection");
            }
            wait();
        }
    }

    /** Notes a received message. */
    synchronized void received(Object message) throws JMSException {
        if (getMessage != null && getSize.getDeclaringClass().isInstance(message)) {
            try {
                held -= (Integer) getSize.invoke(message);
                messages--;
            } catch (ReflectiveOperationException error) {
                throw new JMSException(error.toString());
            }
            notifyAll();
        }
    }

    /** Notes that no message waits: the library drops expired and repeated ones without a sign. */
    synchronized void empty() {
        held = messages = 0;
        notifyAll();
    }

    /** Returns the bytes of the largest message so far. */
    synchronized long largest() {
        return largest;
    }

    /** Ends a wait, and the connection with it. */
    synchronized void end() {
        ended = true;
        notifyAll();
    }
}
