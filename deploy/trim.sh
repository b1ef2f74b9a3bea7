#!/bin/sh
# Removes from an installed environment what the gateway never loads: `trim.sh /opt/gateway`.
# tests/deploy/test_image_*.py run the gateway, its conversion to Parquet and its S3 client after it.
set -eu
cd "$1"/lib/python3*/site-packages

# Arrow: the server of Flight, headers, Cython sources, and tests.
rm -rf pyarrow/include pyarrow/src pyarrow/tests pyarrow/*.pxd pyarrow/*.pxi pyarrow/*.pyx \
    pyarrow/*flight* pyarrow/_pyarrow_cpp_tests* pyarrow/_substrait* pyarrow/_orc* pyarrow/_gandiva*

# NumPy: tests, the Fortran and C interfaces, and type stubs.
find numpy -depth -type d -name tests -exec rm -rf {} +
find . -name '*.pyi' -delete
rm -rf numpy/f2py numpy/distutils numpy/_core/include numpy/_core/lib numpy/random/lib \
    numpy/*/*_tests.*.so numpy/_core/_simd.*.so

# pandas, of which PySpark asks only that it can be imported: tests.
rm -rf pandas/tests

# Rich colours program text with Pygments; the gateway prints none.
find pygments/lexers -name '*.py*' ! -name '__init__*' ! -name '_mapping*' ! -name 'python*' -delete

# Wheels have no links: a library is there once for each of its names.
for file in $(find . -type f -name '*.so*' -size +50k | sort -r); do
    for other in "${file%.so*}".so*; do
        if [ "$other" != "$file" ] && [ ! -L "$other" ] && [ ! -L "$file" ] && cmp -s "$file" "$other"; then
            ln -sf "${file##*/}" "$other"
        fi
    done
done

# Symbols for a debugger. The vendor's library (Solace's) stays as it was published.
find numpy pyarrow yaml xxhash msgpack -type f -name '*.so*' -exec strip --strip-unneeded {} +
