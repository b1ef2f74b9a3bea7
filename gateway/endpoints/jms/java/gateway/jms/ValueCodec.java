package gateway.jms;

import java.lang.reflect.Array;
import java.util.ArrayList;
import java.util.Enumeration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import javax.jms.JMSException;
import javax.jms.MapMessage;
import javax.jms.MessageEOFException;
import javax.jms.StreamMessage;

/** Typed values: a tag and its bytes. Maps and lists nest where the provider supports that. */
final class ValueCodec {
    private static final int NULL = 0, TRUE = 1, FALSE = 2, BYTE = 3, SHORT = 4, INT = 5, LONG = 6;
    private static final int FLOAT = 7, DOUBLE = 8, CHAR = 9, TEXT = 10, BYTES = 11, MAP = 12, LIST = 13;

    private ValueCodec() {}

    static void write(ByteWriter out, Object value) throws JMSException {
        if (value == null) {
            out.u8(NULL);
        } else if (value instanceof String) {
            out.u8(TEXT);
            writeText(out, (String) value);
        } else if (value instanceof Boolean) {
            out.u8((Boolean) value ? TRUE : FALSE);
        } else if (value instanceof Number) {
            writeNumber(out, (Number) value);
        } else if (value instanceof Character) {
            out.u8(CHAR);
            out.i32((Character) value);
        } else if (value instanceof byte[]) {
            out.u8(BYTES);
            out.i32(((byte[]) value).length);
            out.raw((byte[]) value, 0, ((byte[]) value).length);
        } else if (value instanceof MapMessage) {
            writeMap(out, (MapMessage) value);
        } else if (value instanceof StreamMessage) {
            writeStream(out, (StreamMessage) value);
        } else if (value instanceof Map) {
            out.u8(MAP);
            out.i32(((Map<?, ?>) value).size());
            for (Map.Entry<?, ?> entry : ((Map<?, ?>) value).entrySet()) {
                writeText(out, String.valueOf(entry.getKey()));
                write(out, entry.getValue());
            }
        } else if (value instanceof List) {
            out.u8(LIST);
            out.i32(((List<?>) value).size());
            for (Object each : (List<?>) value) {
                write(out, each);
            }
        } else if (value.getClass().isArray()) {
            out.u8(LIST);
            out.i32(Array.getLength(value));
            for (int i = 0; i < Array.getLength(value); i++) {
                write(out, Array.get(value, i));
            }
        } else {
            throw new JMSException("no type for a value of " + value.getClass().getName());
        }
    }

    private static void writeNumber(ByteWriter out, Number value) throws JMSException {
        if (value instanceof Integer) {
            out.u8(INT);
            out.i32((Integer) value);
        } else if (value instanceof Long) {
            out.u8(LONG);
            out.i64((Long) value);
        } else if (value instanceof Double) {
            out.u8(DOUBLE);
            out.i64(Double.doubleToRawLongBits((Double) value));
        } else if (value instanceof Float) {
            out.u8(FLOAT);
            out.i32(Float.floatToRawIntBits((Float) value));
        } else if (value instanceof Short) {
            out.u8(SHORT);
            out.i32((Short) value);
        } else if (value instanceof Byte) {
            out.u8(BYTE);
            out.i32((Byte) value);
        } else {
            throw new JMSException("no type for a value of " + value.getClass().getName());
        }
    }

    static void writeText(ByteWriter out, String text) {
        int at = out.size;
        out.i32(0);
        out.patch(at, out.text(text));
    }

    static void writeMap(ByteWriter out, MapMessage message) throws JMSException {
        out.u8(MAP);
        int at = out.size;
        out.i32(0);
        int count = 0;
        for (Enumeration<?> names = message.getMapNames(); names.hasMoreElements(); count++) {
            String name = (String) names.nextElement();
            writeText(out, name);
            write(out, message.getObject(name));
        }
        out.patch(at, count);
    }

    static void writeStream(ByteWriter out, StreamMessage message) throws JMSException {
        out.u8(LIST);
        int at = out.size;
        out.i32(0);
        int count = 0;
        message.reset();
        try {
            for (;; count++) {
                write(out, message.readObject());
            }
        } catch (MessageEOFException end) {
            out.patch(at, count);
        }
    }

    static Object read(ByteReader in) {
        int tag = in.u8();
        switch (tag) {
            case NULL: return null;
            case TRUE: return Boolean.TRUE;
            case FALSE: return Boolean.FALSE;
            case BYTE: return (byte) in.i32();
            case SHORT: return (short) in.i32();
            case INT: return in.i32();
            case LONG: return in.i64();
            case FLOAT: return Float.intBitsToFloat(in.i32());
            case DOUBLE: return Double.longBitsToDouble(in.i64());
            case CHAR: return (char) in.i32();
            case TEXT: return in.text(in.i32());
            case BYTES: return in.raw(in.i32());
            case MAP: return readMap(in);
            case LIST: return readList(in);
            default: throw new IllegalArgumentException("tag " + tag);
        }
    }

    static Map<String, Object> readMap(ByteReader in) {
        Map<String, Object> map = new LinkedHashMap<>();
        for (int left = in.i32(); left > 0; left--) {
            map.put(in.text(in.i32()), read(in));
        }
        return map;
    }

    private static List<Object> readList(ByteReader in) {
        List<Object> list = new ArrayList<>();
        for (int left = in.i32(); left > 0; left--) {
            list.add(read(in));
        }
        return list;
    }
}
