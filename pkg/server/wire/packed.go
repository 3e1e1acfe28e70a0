package wire

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"iter"
	"net/http"
)

// packFrom is the minimum size of a response that is compressed while it waits for its reader, in bytes.
const packFrom = 64 << 10

// Packed is a complete body that waits until the client has read it. A long body is stored compressed, so that slow clients occupy less memory. If
// the client doesn't accept compression, the body is decompressed during the transfer.
type Packed struct {
	data   []byte
	zipped bool
	length int    // of the body
	tag    string // for If-None-Match; "" if it isn't known yet
}

// Pack encodes a value as JSON in a Packed.
func Pack(value any) (*Packed, error) {
	body, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	p := &Packer{}
	if _, err := p.Write(body); err != nil {
		return nil, err
	}
	out, err := p.Done()
	if err != nil {
		return nil, err
	}
	out.tag = tagOf(body)
	return out, nil
}

// PackList encodes a list as JSON, between two strings. It encodes the values one after the other, so that only one value is in memory as
// uncompressed JSON.
func PackList(before, after string, values iter.Seq[any]) (*Packed, error) {
	p, sum := &Packer{}, sha256.New()
	w := io.MultiWriter(sum, p)
	if _, err := io.WriteString(w, before+"["); err != nil {
		return nil, err
	}
	first := true
	for value := range values {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		if !first {
			text = append([]byte{','}, text...)
		}
		first = false
		if _, err := w.Write(text); err != nil {
			return nil, err
		}
	}
	if _, err := io.WriteString(w, "]"+after); err != nil {
		return nil, err
	}
	out, err := p.Done()
	if err != nil {
		return nil, err
	}
	out.tag = tagSum(sum.Sum(nil))
	return out, nil
}

// Size returns the size of the body in memory, in bytes.
func (p *Packed) Size() int { return len(p.data) }

// JSON responds with the body, which must be JSON.
func (p *Packed) JSON(w http.ResponseWriter, r *http.Request, status int) {
	p.answer(w, r, status, mediaJSON)
}

// WriteTo writes the uncompressed body.
func (p *Packed) WriteTo(w io.Writer) (int64, error) {
	if !p.zipped {
		n, err := w.Write(p.data)
		return int64(n), err
	}
	z, err := gzip.NewReader(bytes.NewReader(p.data))
	if err != nil {
		return 0, err
	}
	return io.CopyBuffer(struct{ io.Writer }{w}, z, make([]byte, packFrom)) //nolint:gosec // it was packed here
}

func tagOf(body []byte) string {
	sum := sha256.Sum256(body)
	return tagSum(sum[:])
}

func tagSum(sum []byte) string { return `W/"` + hex.EncodeToString(sum[:12]) + `"` }

// Packer is a writer whose parts become a Packed.
type Packer struct {
	buf    bytes.Buffer
	zip    *gzip.Writer
	length int
}

// Write adds a part to the body.
func (p *Packer) Write(part []byte) (int, error) {
	p.length += len(part)
	if p.zip == nil && p.length < packFrom {
		return p.buf.Write(part)
	}
	if p.zip == nil {
		first := bytes.Clone(p.buf.Bytes())
		p.buf.Reset()
		p.zip, _ = gzip.NewWriterLevel(&p.buf, gzip.BestSpeed) // a valid level
		if _, err := p.zip.Write(first); err != nil {
			return 0, err
		}
	}
	return p.zip.Write(part)
}

// Done returns the complete body.
func (p *Packer) Done() (*Packed, error) {
	if p.zip != nil {
		if err := p.zip.Close(); err != nil {
			return nil, err
		}
	}
	return &Packed{data: bytes.Clone(p.buf.Bytes()), zipped: p.zip != nil, length: p.length}, nil
}
