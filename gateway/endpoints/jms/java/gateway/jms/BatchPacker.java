package gateway.jms;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectOutputStream;
import java.lang.reflect.Method;
import java.util.Enumeration;
import javax.jms.BytesMessage;
import javax.jms.Destination;
import javax.jms.JMSException;
import javax.jms.MapMessage;
import javax.jms.Message;
import javax.jms.ObjectMessage;
import javax.jms.Queue;
import javax.jms.StreamMessage;
import javax.jms.TemporaryQueue;
import javax.jms.TemporaryTopic;
import javax.jms.TextMessage;
import javax.jms.Topic;

/** Packs messages: a table of fixed records, then the parts of variable length, in order. */
public final class BatchPacker {
    static final int TEXT = 0, BYTES = 1, MAP = 2, STREAM = 3, OBJECT = 4, NONE = 5, NULL_TEXT = 6;
    static final int UNREADABLE = 7;
    // flags; the high four bits: kind
    static final int PERSISTENT = 1, REDELIVERED = 2, EXTRA_UNREADABLE = 4;
    static final int TOPIC = 1, QUEUE = 2, TEMPORARY_TOPIC = 3, TEMPORARY_QUEUE = 4;

    private final boolean deserialize;
    private ByteWriter fixed;
    private ByteWriter body;
    private int count;
    private Method deliveryTimeGetter;

    BatchPacker(boolean deserialize) {
        this.deserialize = deserialize;
        try {
            deliveryTimeGetter = Message.class.getMethod("getJMSDeliveryTime"); // JMS 2.0
        } catch (NoSuchMethodException older) {
            deliveryTimeGetter = null;
        }
    }

    void start() {
        fixed = new ByteWriter();
        body = new ByteWriter();
        count = 0;
        fixed.i32(0);
    }

    int count() {
        return count;
    }

    int size() {
        return body.size;
    }

    byte[] finish() {
        fixed.patch(0, count);
        byte[] all = java.util.Arrays.copyOf(fixed.data, fixed.size + body.size);
        System.arraycopy(body.data, 0, all, fixed.size, body.size);
        fixed = body = null;
        return all;
    }

    void add(Message message, int consumer) throws JMSException {
        count++;
        int head = fixed.size;
        Destination destination = message.getJMSDestination();
        int flags = message.getJMSDeliveryMode() == 2 ? PERSISTENT : 0;
        flags |= message.getJMSRedelivered() ? REDELIVERED : 0;
        flags |= kind(destination) << 4;
        long timestamp = message.getJMSTimestamp();
        fixed.u8(0);
        fixed.u8(flags);
        fixed.u8(message.getJMSPriority());
        fixed.u8(consumer);
        fixed.i64(timestamp);
        fixed.i64(message.getJMSExpiration());
        String id = message.getJMSMessageID();
        fixed.i32(id == null ? 0 : body.text(id));
        fixed.i32(destination == null ? 0 : body.text(name(destination)));
        int start = body.size;
        int kind;
        try {
            ContentCheck.checkBody(message);
            kind = packBody(message);
        } catch (JMSException | RuntimeException | IOException | StackOverflowError
                | LinkageError error) {
            body.size = start;
            body.text(ConnectionMonitor.describe(error));
            kind = UNREADABLE;
        }
        fixed.data[head] = (byte) kind;
        fixed.i32(body.size - start);
        start = body.size;
        try {
            ContentCheck.checkProperties(message);
            packExtra(message, timestamp);
        } catch (JMSException | RuntimeException | IOException | StackOverflowError
                | LinkageError error) {
            body.size = start;
            body.text(ConnectionMonitor.describe(error));
            fixed.data[head + 1] |= EXTRA_UNREADABLE;
        }
        fixed.i32(body.size - start);
    }

    private int packBody(Message message) throws JMSException, IOException {
        if (message instanceof BytesMessage) {
            BytesMessage bytes = (BytesMessage) message;
            byte[] data = new byte[(int) bytes.getBodyLength()];
            bytes.reset();
            for (int at = 0; at < data.length;) {
                byte[] rest = at == 0 ? data : new byte[data.length - at];
                int read = bytes.readBytes(rest);
                if (read <= 0) {
                    throw new IOException("body ends after " + at + " of " + data.length + " bytes");
                }
                if (at > 0) {
                    System.arraycopy(rest, 0, data, at, read);
                }
                at += read;
            }
            body.raw(data, 0, data.length);
            return BYTES;
        }
        if (message instanceof TextMessage) {
            String text = ((TextMessage) message).getText();
            if (text == null) {
                return NULL_TEXT;
            }
            ContentCheck.checkSize(text.length());
            body.text(text);
            return TEXT;
        }
        if (message instanceof MapMessage) {
            ValueCodec.writeMap(body, (MapMessage) message);
            return MAP;
        }
        if (message instanceof StreamMessage) {
            ValueCodec.writeStream(body, (StreamMessage) message);
            return STREAM;
        }
        if (message instanceof ObjectMessage) {
            byte[] data = serializedBytes((ObjectMessage) message);
            body.raw(data, 0, data.length);
            return OBJECT;
        }
        return NONE;
    }

    /** Returns the serialized bytes: deserializing the object would run code from its sender. */
    private byte[] serializedBytes(ObjectMessage message) throws JMSException, IOException {
        if (deserialize) {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
                out.writeObject(message.getObject());
            }
            return bytes.toByteArray();
        }
        if (!ContentCheck.isActiveMq(message)) {
            throw new IOException("the provider gives the bytes of an object message only"
                    + " after deserializing it");
        }
        byte[] content = ContentCheck.bytesOf(message, "getContent");
        return content == null ? new byte[0] : content;
    }

    private void packExtra(Message message, long timestamp) throws JMSException {
        String correlation = message.getJMSCorrelationID();
        Destination reply = message.getJMSReplyTo();
        String type = message.getJMSType();
        long delivery = deliveryTime(message, timestamp);
        Enumeration<?> names = message.getPropertyNames();
        String name = nextName(names);
        if (correlation == null && reply == null && type == null && delivery == 0 && name == null) {
            return;
        }
        ValueCodec.write(body, correlation);
        body.u8(kind(reply));
        ValueCodec.write(body, reply == null ? null : name(reply));
        ValueCodec.write(body, type);
        body.i64(delivery);
        int at = body.size;
        body.i32(0);
        int number = 0;
        for (; name != null; name = nextName(names), number++) {
            ValueCodec.writeText(body, name);
            ValueCodec.write(body, message.getObjectProperty(name));
        }
        body.patch(at, number);
        if (reply instanceof TemporaryQueue || reply instanceof TemporaryTopic) {
            ConnectionMonitor.remember(name(reply), reply);
        }
    }

    private static String nextName(Enumeration<?> names) {
        while (names.hasMoreElements()) {
            String name = (String) names.nextElement();
            if (!name.equals("JMSXDeliveryCount")) {
                return name;
            }
        }
        return null;
    }

    private long deliveryTime(Message message, long timestamp) {
        if (deliveryTimeGetter == null) {
            return 0;
        }
        try {
            long time = (Long) deliveryTimeGetter.invoke(message);
            return time > timestamp ? time : 0;
        } catch (ReflectiveOperationException | LinkageError older) {
            deliveryTimeGetter = null; // a message class of JMS 1.1 under an API of 2.0
            return 0;
        }
    }

    static int kind(Destination destination) {
        if (destination instanceof TemporaryQueue) {
            return TEMPORARY_QUEUE;
        }
        if (destination instanceof TemporaryTopic) {
            return TEMPORARY_TOPIC;
        }
        return destination instanceof Queue ? QUEUE : destination instanceof Topic ? TOPIC : 0;
    }

    /** Returns the name of a queue or topic; IBM MQ has a URI, such as queue:///A?targetClient=1. */
    public static String name(Destination destination) throws JMSException {
        if (destination instanceof Queue) {
            return nameIn(((Queue) destination).getQueueName(), "queue:///");
        }
        return destination instanceof Topic
                ? nameIn(((Topic) destination).getTopicName(), "topic://") : "";
    }

    private static String nameIn(String text, String scheme) {
        if (text == null || !text.startsWith(scheme)) {
            return text;
        }
        int end = text.indexOf('?');
        return text.substring(scheme.length(), end < 0 ? text.length() : end);
    }
}
