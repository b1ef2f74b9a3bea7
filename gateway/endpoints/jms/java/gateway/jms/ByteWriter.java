package gateway.jms;

/** A growing array of bytes, big-endian; text is written as UTF-8 and may have lone surrogates. */
final class ByteWriter {
    byte[] data = new byte[1 << 14];
    int size;

    private void reserve(int more) {
        if (more > data.length - size) {
            long wanted = Math.max((long) size + more, Math.min(2L * data.length, size + (64L << 20)));
            data = java.util.Arrays.copyOf(data, (int) Math.min(wanted, Integer.MAX_VALUE - 16));
        }
    }

    void u8(int value) {
        reserve(1);
        data[size++] = (byte) value;
    }

    void i32(int value) {
        reserve(4);
        data[size++] = (byte) (value >> 24);
        data[size++] = (byte) (value >> 16);
        data[size++] = (byte) (value >> 8);
        data[size++] = (byte) value;
    }

    void i64(long value) {
        i32((int) (value >> 32));
        i32((int) value);
    }

    void raw(byte[] bytes, int offset, int length) {
        reserve(length);
        System.arraycopy(bytes, offset, data, size, length);
        size += length;
    }

    /** Returns the bytes of a text, or a few more with surrogate pairs. */
    private static int encodedSize(String text) {
        int size = text.length();
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            size += c < 0x80 ? 0 : c < 0x800 ? 1 : 2;
        }
        return size;
    }

    /** Appends the text without its length, and returns its bytes. */
    int text(String text) {
        int before = size;
        int length = text.length();
        reserve(length < 1 << 12 ? length * 3 : encodedSize(text));
        byte[] to = data;
        int at = size;
        for (int i = 0; i < length; i++) {
            int c = text.charAt(i);
            if (c < 0x80) {
                to[at++] = (byte) c;
                continue;
            }
            if (Character.isHighSurrogate((char) c) && i + 1 < length
                    && Character.isLowSurrogate(text.charAt(i + 1))) {
                c = Character.toCodePoint((char) c, text.charAt(++i));
                to[at++] = (byte) (0xF0 | c >> 18);
                to[at++] = (byte) (0x80 | c >> 12 & 0x3F);
                to[at++] = (byte) (0x80 | c >> 6 & 0x3F);
            } else if (c < 0x800) {
                to[at++] = (byte) (0xC0 | c >> 6);
            } else {
                to[at++] = (byte) (0xE0 | c >> 12);
                to[at++] = (byte) (0x80 | c >> 6 & 0x3F);
            }
            to[at++] = (byte) (0x80 | c & 0x3F);
        }
        size = at;
        return at - before;
    }

    /** Overwrites an int written earlier. */
    void patch(int at, int value) {
        data[at] = (byte) (value >> 24);
        data[at + 1] = (byte) (value >> 16);
        data[at + 2] = (byte) (value >> 8);
        data[at + 3] = (byte) value;
    }
}
