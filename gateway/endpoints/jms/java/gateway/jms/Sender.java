package gateway.jms;

import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import javax.jms.BytesMessage;
import javax.jms.Connection;
import javax.jms.Destination;
import javax.jms.InvalidDestinationException;
import javax.jms.JMSException;
import javax.jms.JMSSecurityException;
import javax.jms.MapMessage;
import javax.jms.Message;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.StreamMessage;

/** Sends packed batches: in one transaction, or with a question to the broker after them. */
public final class Sender {
    private static final int MAX_REMEMBERED = 10_000;

    private final ConnectionMonitor monitor;
    private final Session plain;
    private final Session transacted;
    private final MessageProducer plainProducer;
    private final MessageProducer transactedProducer;
    private final boolean tibco;
    private final Map<String, Destination> destinations = new HashMap<>();
    private final Set<Destination> full = new HashSet<>(); // that had no room during this call

    public Sender(Connection connection, ConnectionMonitor monitor) throws JMSException {
        this.monitor = monitor;
        plain = connection.createSession(false, 1);
        transacted = connection.createSession(true, 0);
        plainProducer = plain.createProducer(null);
        transactedProducer = transacted.createProducer(null);
        tibco = connection.getClass().getName().startsWith("com.tibco.");
    }

    private static final class Refused extends Exception {
        private static final long serialVersionUID = 1;

        Refused(String rule, String reason) {
            super(rule + "\n" + reason);
        }
    }

    /** An unpacked message and the result of sending it. */
    private static final class OutgoingMessage {
        Destination destination;
        Message message;
        int mode;
        int priority;
        long expiration;
        String fault; // null, "retry", or a rule, a line feed and a reason
    }

    /**
     * Sends the batch. Returns null when every message was sent. Otherwise returns an entry for each
     * message: null if it was sent, "retry", or a rule, a line feed and a reason. The rule no-room
     * means another attempt, too.
     */
    public String[] send(byte[] data, int count, boolean inTransaction) {
        Session session = inTransaction ? transacted : plain;
        MessageProducer producer = inTransaction ? transactedProducer : plainProducer;
        OutgoingMessage[] batch = unpack(session, data, count);
        full.clear();
        boolean allSent = true;
        for (OutgoingMessage each : batch) {
            allSent &= each.fault == null && trySend(producer, each);
        }
        if (inTransaction && monitor.failure() == null) {
            try {
                transacted.commit();
            } catch (JMSException | RuntimeException error) {
                allSent = false;
                sendSeparately(producer, batch, error);
            }
        } else if (monitor.failure() == null) {
            monitor.answers(); // a server that does has taken what came before on this connection
        }
        if (monitor.failure() != null) {
            allSent = false;
            for (OutgoingMessage each : batch) {
                // Without an answer it is unknown which of them arrived.
                each.fault = each.fault == null ? monitor.retryFault() : each.fault;
            }
        }
        if (allSent) {
            return null;
        }
        String[] faults = new String[count];
        for (int i = 0; i < count; i++) {
            faults[i] = batch[i].fault;
        }
        return faults;
    }

    /** Sends each message in its own transaction, to find the refused ones of a refused batch. */
    private void sendSeparately(MessageProducer producer, OutgoingMessage[] batch, Throwable error) {
        if (!rolledBack() || !monitor.answers()) {
            monitor.fail(error);
            return;
        }
        for (OutgoingMessage each : batch) {
            if (each.fault != null || !trySend(producer, each)) {
                continue;
            }
            try {
                transacted.commit();
            } catch (JMSException | RuntimeException again) {
                if (!rolledBack()) {
                    monitor.fail(again);
                    return;
                }
                recordFault(each, again);
            }
            if (monitor.failure() != null) {
                return;
            }
        }
    }

    private boolean rolledBack() {
        try {
            transacted.rollback();
            return true;
        } catch (JMSException | RuntimeException error) {
            monitor.fail(error);
            return false;
        }
    }

    private boolean trySend(MessageProducer producer, OutgoingMessage each) {
        try {
            long left = 0;
            if (each.expiration > 0) {
                left = each.expiration - System.currentTimeMillis();
                if (left <= 0) {
                    throw new Refused("expired", "it expired before it was sent");
                }
            }
            monitor.check();
            if (full.contains(each.destination)) { // room comes at any time
                throw new Refused("no-room", "it would pass a message that had no room");
            }
            producer.send(each.destination, each.message, each.mode, each.priority, left);
            return true;
        } catch (Refused refused) {
            each.fault = refused.getMessage();
        } catch (JMSException | RuntimeException error) {
            recordFault(each, error);
        }
        return false;
    }

    /** Records the fault of the message; it is sent again if the broker is full or silent. */
    private void recordFault(OutgoingMessage each, Throwable error) {
        if (ConnectionMonitor.isFull(error)) {
            each.fault = ConnectionMonitor.NO_ROOM + ConnectionMonitor.describe(error);
            full.add(each.destination);
        } else if (!monitor.answers()) {
            each.fault = monitor.retryFault();
        } else if (error instanceof JMSSecurityException) {
            each.fault = "not-authorized\n" + ConnectionMonitor.describe(error);
        } else if (error instanceof InvalidDestinationException) {
            each.fault = "destination\n" + ConnectionMonitor.describe(error);
        } else {
            each.fault = "refused\n" + ConnectionMonitor.describe(error);
        }
    }

    private OutgoingMessage[] unpack(Session session, byte[] data, int count) {
        ByteReader in = new ByteReader(data);
        OutgoingMessage[] batch = new OutgoingMessage[count];
        for (int i = 0; i < count; i++) {
            OutgoingMessage each = batch[i] = new OutgoingMessage();
            int end = in.position + in.i32();
            try {
                fill(session, in, end, each);
            } catch (Refused refused) {
                each.fault = refused.getMessage();
            } catch (JMSException | RuntimeException error) {
                recordFault(each, error);
            }
            in.position = end;
        }
        return batch;
    }

    private void fill(Session session, ByteReader in, int end, OutgoingMessage each)
            throws JMSException, Refused {
        int kind = in.u8();
        int destinationKind = in.u8();
        each.priority = in.u8();
        each.mode = in.u8();
        each.expiration = in.i64();
        String name = in.text(in.i32());
        Message message = readBody(session, kind, in, in.i32());
        if (in.position < end) {
            readExtra(session, in, message);
        }
        each.destination = destination(session, destinationKind, name);
        each.message = message;
    }

    private Message readBody(Session session, int kind, ByteReader in, int size)
            throws JMSException, Refused {
        switch (kind) {
            case BatchPacker.TEXT:
                return session.createTextMessage(in.text(size));
            case BatchPacker.NULL_TEXT:
                return session.createTextMessage();
            case BatchPacker.NONE:
                return session.createMessage();
            case BatchPacker.MAP:
                in.u8();
                return mapMessage(session, ValueCodec.readMap(in));
            case BatchPacker.STREAM:
                StreamMessage stream = session.createStreamMessage();
                for (Object each : (List<?>) ValueCodec.read(in)) {
                    stream.writeObject(nested(session, each));
                }
                return stream;
            default:
                BytesMessage bytes = session.createBytesMessage();
                bytes.writeBytes(in.raw(size));
                return bytes;
        }
    }

    private MapMessage mapMessage(Session session, Map<?, ?> values) throws JMSException, Refused {
        MapMessage message = session.createMapMessage();
        for (Map.Entry<?, ?> entry : values.entrySet()) {
            try {
                message.setObject((String) entry.getKey(), nested(session, entry.getValue()));
            } catch (JMSException | IllegalArgumentException error) {
                String reason = ConnectionMonitor.describe(error);
                throw new Refused("map-value", entry.getKey() + ": " + reason);
            }
        }
        return message;
    }

    /** Returns a nested value: for EMS a message or an array, for others the map or list itself. */
    private Object nested(Session session, Object value) throws JMSException, Refused {
        if (!tibco || !(value instanceof Map || value instanceof List)) {
            return value;
        }
        if (value instanceof Map) {
            return mapMessage(session, (Map<?, ?>) value);
        }
        List<?> list = (List<?>) value;
        Object array = PrimitiveArrays.of(list);
        if (array != null) {
            return array;
        }
        StreamMessage stream = session.createStreamMessage();
        for (Object each : list) {
            stream.writeObject(nested(session, each));
        }
        return stream;
    }

    private void readExtra(Session session, ByteReader in, Message message)
            throws JMSException, Refused {
        String correlation = (String) ValueCodec.read(in);
        int replyKind = in.u8();
        String reply = (String) ValueCodec.read(in);
        String type = (String) ValueCodec.read(in);
        if (correlation != null) {
            message.setJMSCorrelationID(correlation);
        }
        if (reply != null) {
            message.setJMSReplyTo(destination(session, replyKind, reply));
        }
        if (type != null) {
            message.setJMSType(type);
        }
        for (int left = in.i32(); left > 0; left--) {
            String name = in.text(in.i32());
            Object value = ValueCodec.read(in);
            try {
                message.setObjectProperty(name, value);
            } catch (JMSException | IllegalArgumentException error) {
                throw new Refused("property", name + ": " + ConnectionMonitor.describe(error));
            }
        }
    }

    private Destination destination(Session session, int kind, String name)
            throws JMSException, Refused {
        if (kind >= BatchPacker.TEMPORARY_TOPIC) {
            Destination temporary = ConnectionMonitor.recall(name);
            if (temporary == null) {
                throw new Refused("temporary-unknown",
                        "the temporary destination " + name + " was not seen by this process");
            }
            return temporary;
        }
        String key = kind + name;
        Destination found = destinations.get(key);
        if (found == null) {
            found = kind == BatchPacker.QUEUE ? session.createQueue(name) : session.createTopic(name);
            // A provider that trims, splits or cuts a name would send to another destination.
            if (BatchPacker.kind(found) != kind || !name.equals(BatchPacker.name(found))
                    || isComposite(found)) {
                throw new Refused("name-altered", "the provider changes the name " + name);
            }
            if (destinations.size() >= MAX_REMEMBERED) {
                destinations.clear();
            }
            destinations.put(key, found);
        }
        return found;
    }

    private static boolean isComposite(Destination destination) {
        try {
            return (Boolean) destination.getClass().getMethod("isComposite").invoke(destination);
        } catch (ReflectiveOperationException other) {
            return false;
        }
    }
}
