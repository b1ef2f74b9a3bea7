package gateway.jms;

import java.nio.charset.StandardCharsets;

/** Reads bytes that Python packed; the inverse of ByteWriter. */
final class ByteReader {
    private final byte[] data;
    int position;

    ByteReader(byte[] data) {
        this.data = data;
    }

    int u8() {
        return data[position++] & 0xFF;
    }

    int i32() {
        return u8() << 24 | u8() << 16 | u8() << 8 | u8();
    }

    long i64() {
        return (long) i32() << 32 | i32() & 0xFFFFFFFFL;
    }

    byte[] raw(int length) {
        position += length;
        return java.util.Arrays.copyOfRange(data, position - length, position);
    }

    String text(int length) {
        String text = new String(data, position, length, StandardCharsets.UTF_8);
        position += length;
        return text.indexOf('\uFFFD') < 0 ? text : decodeSurrogates(position - length, position);
    }

    /** Decodes text with lone surrogates, three bytes each, which Java's decoder replaces. */
    private String decodeSurrogates(int from, int to) {
        StringBuilder text = new StringBuilder(to - from);
        while (from < to) {
            int c = data[from++];
            if (c >= 0) {
                text.append((char) c);
                continue;
            }
            int more = (c & 0xE0) == 0xC0 ? 1 : (c & 0xF0) == 0xE0 ? 2 : 3;
            c &= 0x3F >> more;
            while (more-- > 0) {
                c = c << 6 | data[from++] & 0x3F;
            }
            text.appendCodePoint(c);
        }
        return text.toString();
    }
}
