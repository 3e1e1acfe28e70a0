package logstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/zstd"
)

// A segment is a file that consists of frames. A frame is a compressed piece of a log with metadata. The state of a log is stored only in its frames,
// so that the log and the state can't differ if the program is killed.
const (
	frameMagic  = 0x31464c50 // "PLF1"
	frameHeader = 64
	// frameMost limits the size of a frame in memory, so that a damaged header can't cause a larger allocation.
	frameMost = 8 << 20
)

const (
	// flagGap means that lines before this frame are missing, because the kubelet removed the lines too early.
	flagGap = 1 << iota
	// flagOpen means that the last line continues in the next frame. The kubelet's rotation may split a line between two files.
	flagOpen
	// flagCounted means that the bits from errorLines on contain the number of stderr lines in the frame. Frames of earlier versions don't have this
	// flag.
	flagCounted
	errorLines = 8 // a shift: 24 bits are enough, because a frame has fewer bytes, and therefore fewer lines
)

// frame describes a piece of a log.
type frame struct {
	flags     uint32
	raw, size uint32 // the size in the log, and the compressed size
	offset    int64  // the offset of its first byte in the log
	source    int64  // the kubelet's file: when its first line was written, in ns
	sourceEnd int64  // how far that file has been read, including this frame
	first     int64  // when its first line was written, in ns
	last      int64  // when its latest line was written
	lines     uint32 // the lines that end in the frame
}

func (f *frame) end() int64 { return f.offset + int64(f.raw) }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errTorn means that a frame is incomplete.
var errTorn = errors.New("a frame is damaged")

// codec compresses and decompresses frames. codec can be used concurrently.
type codec struct {
	in  *zstd.Encoder
	out *zstd.Decoder
}

func newCodec() (*codec, error) {
	in, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(2), zstd.WithWindowSize(256<<10), zstd.WithEncoderCRC(false))
	if err != nil {
		return nil, fmt.Errorf("open the compressor: %w", err)
	}
	out, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(2*frameMost))
	if err != nil {
		return nil, fmt.Errorf("open the decompressor: %w", err)
	}
	return &codec{in, out}, nil
}

func (c *codec) pack(f *frame, data []byte) []byte {
	out := make([]byte, frameHeader, frameHeader+len(data)/4)
	out = c.in.EncodeAll(data, out)
	f.raw, f.size = uint32(len(data)), uint32(len(out)-frameHeader)
	le := binary.LittleEndian
	for i, v := range []uint32{frameMagic, f.flags, f.raw, f.size} {
		le.PutUint32(out[4*i:], v)
	}
	for i, v := range []int64{f.offset, f.source, f.sourceEnd, f.first, f.last} {
		le.PutUint64(out[16+8*i:], uint64(v))
	}
	le.PutUint32(out[56:], f.lines)
	le.PutUint32(out[60:], checksum(out[:60], out[frameHeader:]))
	return out
}

func checksum(header, payload []byte) uint32 {
	return crc32.Update(crc32.Checksum(header, castagnoli), castagnoli, payload)
}

// readHeader reads the header of the frame at a position in a segment. readHeader returns io.EOF at the end of the segment.
func readHeader(r io.ReaderAt, at int64) (frame, error) {
	var b [frameHeader]byte
	n, err := r.ReadAt(b[:], at)
	switch {
	case n == 0 && errors.Is(err, io.EOF):
		return frame{}, io.EOF
	case n < frameHeader && (err == nil || errors.Is(err, io.EOF)):
		return frame{}, errTorn
	case n < frameHeader:
		return frame{}, err
	}
	le := binary.LittleEndian
	number := func(i int) int64 { return int64(le.Uint64(b[16+8*i:])) }
	f := frame{flags: le.Uint32(b[4:]), raw: le.Uint32(b[8:]), size: le.Uint32(b[12:]), offset: number(0), source: number(1),
		sourceEnd: number(2), first: number(3), last: number(4), lines: le.Uint32(b[56:])}
	if le.Uint32(b[:]) != frameMagic || f.raw > frameMost || f.size > 2*frameMost || f.offset < 0 {
		return frame{}, errTorn
	}
	return f, nil
}

// unpack reads the frame at a position in a segment, and verifies the content.
func (c *codec) unpack(r io.ReaderAt, at int64) ([]byte, error) {
	f, err := readHeader(r, at)
	if err != nil {
		return nil, err
	}
	b := make([]byte, frameHeader+int(f.size))
	if _, err := r.ReadAt(b, at); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if binary.LittleEndian.Uint32(b[60:]) != checksum(b[:60], b[frameHeader:]) {
		return nil, errTorn
	}
	data, err := c.out.DecodeAll(b[frameHeader:], make([]byte, 0, f.raw))
	if err != nil || len(data) != int(f.raw) {
		return nil, errTorn
	}
	return data, nil
}

// describe sets the properties of a frame that depend on its lines.
func (f *frame) describe(data []byte) {
	open := map[bool]bool{} // by whether it is stderr
	errs, strange := uint32(0), false
	for line := range bytes.Lines(data) {
		l, ok := parseLine(line)
		if !ok {
			f.lines++
			continue
		}
		if f.first == 0 {
			f.first = l.stamp
		}
		f.last = max(f.last, l.stamp)
		stderr := string(l.stream) == "stderr"
		strange = strange || !stderr && string(l.stream) != "stdout"
		if open[stderr] = l.partial; !l.partial {
			f.lines++
			if stderr {
				errs++
			}
		}
	}
	if !strange {
		f.flags |= flagCounted | errs<<errorLines
	}
	if open[true] || open[false] {
		f.flags |= flagOpen
	}
}

func (f *frame) open() bool { return f.flags&flagOpen != 0 }

// linesOf returns the number of lines of a stream that end in the frame. known is false if counting requires reading the lines.
func (f *frame) linesOf(stream string) (n int64, known bool) {
	errs := f.flags >> errorLines
	switch {
	case stream == "":
		return int64(f.lines), true
	case f.flags&flagCounted == 0 || errs > f.lines:
		return 0, false
	case stream == "stderr":
		return int64(errs), true
	}
	return int64(f.lines - errs), true
}

// without reports whether the frame contains no line of a stream. without returns false if the last line continues in the next frame, because that
// line may belong to the stream.
func (f *frame) without(stream string) bool {
	n, known := f.linesOf(stream)
	return known && n == 0 && !f.open()
}
