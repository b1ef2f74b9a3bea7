package gateway.jms;

import java.lang.reflect.Array;
import java.util.List;

/** Arrays of one primitive number type, which EMS accepts as values. */
final class PrimitiveArrays {
    private PrimitiveArrays() {}

    /** Returns an array of primitives when all items have one such type, else null. */
    static Object of(List<?> list) {
        Class<?> type = list.isEmpty() || list.get(0) == null ? null : primitive(list.get(0));
        if (type == null) {
            return null;
        }
        Object array = Array.newInstance(type, list.size());
        for (int i = 0; i < list.size(); i++) {
            if (list.get(i) == null || list.get(i).getClass() != list.get(0).getClass()) {
                return null;
            }
            Array.set(array, i, list.get(i));
        }
        return array;
    }

    private static Class<?> primitive(Object value) {
        if (value instanceof Short) {
            return short.class;
        }
        if (value instanceof Integer) {
            return int.class;
        }
        if (value instanceof Long) {
            return long.class;
        }
        if (value instanceof Float) {
            return float.class;
        }
        return value instanceof Double ? double.class : null;
    }
}
