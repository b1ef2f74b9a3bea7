package gateway.jms;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import javax.jms.BytesMessage;
import javax.jms.Connection;
import javax.jms.Destination;
import javax.jms.InvalidDestinationException;
import javax.jms.JMSException;
import javax.jms.JMSSecurityException;
import javax.jms.MapMessage;
import javax.jms.Message;
import javax.jms.MessageProducer;
import javax.jms.ResourceAllocationException;
import javax.jms.Session;
import javax.jms.StreamMessage;

/** Sends packed batches: in one transaction, or one by one where nobody answers anyway. */
public final class Sender {
    private static final int KNOWN = 10_000;

    private final Watch watch;
    private final Session plain;
    private final Session transacted;
    private final MessageProducer plainProducer;
    private final MessageProducer transactedProducer;
    private final boolean tibco;
    private final Map<String, Destination> known = new HashMap<>();

    public Sender(Connection connection, Watch watch) throws JMSException {
        this.watch = watch;
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

    /** One message as Python packed it. */
    private static final class Packed {
        Destination destination;
        Message message;
        int mode;
        int priority;
        long expiration;
        String fault; // null, "retry", or a rule, a line feed and a reason
    }

    /**
     * Sends the batch. The answer is null when all went well, else one line feed separated pair of
     * rule and reason per message, "retry", or nothing for those that went well.
     */
    public String[] send(byte[] data, int count, boolean inTransaction) {
        Session session = inTransaction ? transacted : plain;
        MessageProducer producer = inTransaction ? transactedProducer : plainProducer;
        Packed[] batch = unpack(session, data, count);
        boolean fine = true;
        for (Packed each : batch) {
            fine &= each.fault == null && attempt(producer, each);
        }
        if (inTransaction && watch.failure() == null) {
            try {
                transacted.commit();
            } catch (JMSException | RuntimeException error) {
                fine = false;
                oneByOne(producer, batch, error);
            }
        }
        if (watch.failure() != null) {
            fine = false;
            for (Packed each : batch) {
                // Without an answer, nobody knows which of them arrived.
                each.fault = each.fault == null ? "retry" : each.fault;
            }
        }
        if (fine) {
            return null;
        }
        String[] faults = new String[count];
        for (int i = 0; i < count; i++) {
            faults[i] = batch[i].fault;
        }
        return faults;
    }

    /** The whole was refused: find out who is to blame, as long as the broker answers. */
    private void oneByOne(MessageProducer producer, Packed[] batch, Throwable error) {
        if (!rolledBack() || !watch.answers()) {
            watch.fail(error);
            return;
        }
        for (Packed each : batch) {
            if (each.fault != null || !attempt(producer, each)) {
                continue;
            }
            try {
                transacted.commit();
            } catch (JMSException | RuntimeException again) {
                if (!rolledBack()) {
                    watch.fail(again);
                    return;
                }
                blame(each, again);
            }
            if (watch.failure() != null) {
                return;
            }
        }
    }

    private boolean rolledBack() {
        try {
            transacted.rollback();
            return true;
        } catch (JMSException | RuntimeException error) {
            watch.fail(error);
            return false;
        }
    }

    private boolean attempt(MessageProducer producer, Packed each) {
        try {
            long left = 0;
            if (each.expiration > 0) {
                left = each.expiration - System.currentTimeMillis();
                if (left <= 0) {
                    throw new Refused("expired", "its expiry has passed before it was sent");
                }
            }
            watch.check();
            producer.send(each.destination, each.message, each.mode, each.priority, left);
            return true;
        } catch (Refused refused) {
            each.fault = refused.getMessage();
        } catch (JMSException | RuntimeException error) {
            blame(each, error);
        }
        return false;
    }

    /** Says whose fault it was: the message's when the broker goes on answering, else nobody's. */
    private void blame(Packed each, Throwable error) {
        if (error instanceof ResourceAllocationException || !watch.answers()) {
            each.fault = "retry";
        } else if (error instanceof JMSSecurityException) {
            each.fault = "not-authorized\n" + Watch.describe(error);
        } else if (error instanceof InvalidDestinationException) {
            each.fault = "destination\n" + Watch.describe(error);
        } else {
            each.fault = "refused\n" + Watch.describe(error);
        }
    }

    private Packed[] unpack(Session session, byte[] data, int count) {
        In in = new In(data);
        Packed[] batch = new Packed[count];
        for (int i = 0; i < count; i++) {
            Packed each = batch[i] = new Packed();
            int end = in.at + in.i32();
            try {
                fill(session, in, end, each);
            } catch (Refused refused) {
                each.fault = refused.getMessage();
            } catch (JMSException | RuntimeException error) {
                blame(each, error);
            }
            in.at = end;
        }
        return batch;
    }

    private void fill(Session session, In in, int end, Packed each) throws JMSException, Refused {
        int kind = in.u8();
        int destinationKind = in.u8();
        each.priority = in.u8();
        each.mode = in.u8();
        each.expiration = in.i64();
        String name = in.text(in.i32());
        Message message = body(session, kind, in, in.i32());
        if (in.at < end) {
            extra(session, in, message);
        }
        each.destination = destination(session, destinationKind, name);
        each.message = message;
    }

    private Message body(Session session, int kind, In in, int size) throws JMSException, Refused {
        switch (kind) {
            case Packer.TEXT:
                return session.createTextMessage(in.text(size));
            case Packer.NULL_TEXT:
                return session.createTextMessage();
            case Packer.NONE:
                return session.createMessage();
            case Packer.MAP:
                in.u8();
                return map(session, Values.readMap(in));
            case Packer.STREAM:
                StreamMessage stream = session.createStreamMessage();
                for (Object each : (List<?>) Values.read(in)) {
                    stream.writeObject(nested(session, each));
                }
                return stream;
            default:
                BytesMessage bytes = session.createBytesMessage();
                bytes.writeBytes(in.raw(size));
                return bytes;
        }
    }

    private MapMessage map(Session session, Map<?, ?> values) throws JMSException, Refused {
        MapMessage message = session.createMapMessage();
        for (Map.Entry<?, ?> entry : values.entrySet()) {
            try {
                message.setObject((String) entry.getKey(), nested(session, entry.getValue()));
            } catch (JMSException | IllegalArgumentException error) {
                throw new Refused("map-value", entry.getKey() + ": " + Watch.describe(error));
            }
        }
        return message;
    }

    /** EMS takes messages and arrays inside a message, others maps and lists or nothing. */
    private Object nested(Session session, Object value) throws JMSException, Refused {
        if (!tibco || !(value instanceof Map || value instanceof List)) {
            return value;
        }
        if (value instanceof Map) {
            return map(session, (Map<?, ?>) value);
        }
        List<?> list = (List<?>) value;
        Object array = Arrays.of(list);
        if (array != null) {
            return array;
        }
        StreamMessage stream = session.createStreamMessage();
        for (Object each : list) {
            stream.writeObject(nested(session, each));
        }
        return stream;
    }

    private void extra(Session session, In in, Message message) throws JMSException, Refused {
        String correlation = (String) Values.read(in);
        int replyKind = in.u8();
        String reply = (String) Values.read(in);
        String type = (String) Values.read(in);
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
            Object value = Values.read(in);
            try {
                message.setObjectProperty(name, value);
            } catch (JMSException | IllegalArgumentException error) {
                throw new Refused("property", name + ": " + Watch.describe(error));
            }
        }
    }

    private Destination destination(Session session, int kind, String name)
            throws JMSException, Refused {
        if (kind >= Packer.TEMPORARY_TOPIC) {
            Destination temporary = Watch.recall(name);
            if (temporary == null) {
                throw new Refused("temporary-unknown",
                        "the temporary destination " + name + " was not seen by this process");
            }
            return temporary;
        }
        String key = kind + name;
        Destination found = known.get(key);
        if (found == null) {
            found = kind == Packer.QUEUE ? session.createQueue(name) : session.createTopic(name);
            // A provider that trims, splits or cuts a name would send to another place.
            if (Packer.kind(found) != kind || !name.equals(Packer.name(found)) || composite(found)) {
                throw new Refused("name-altered", "the provider makes another name of " + name);
            }
            if (known.size() >= KNOWN) {
                known.clear();
            }
            known.put(key, found);
        }
        return found;
    }

    private static boolean composite(Destination destination) {
        try {
            return (Boolean) destination.getClass().getMethod("isComposite").invoke(destination);
        } catch (ReflectiveOperationException other) {
            return false;
        }
    }
}
