package process

import "sync"

// Tail keeps the last bytes that were written to it.
type Tail struct {
	mu   sync.Mutex
	buf  []byte
	max  int
	next int // position of the oldest byte, once buf is full
	cut  bool
}

// NewTail returns a Tail that keeps size bytes. It allocates the whole buffer, because unwritten pages use no memory. A growing
// buffer would leave garbage.
func NewTail(size int) *Tail { return &Tail{buf: make([]byte, 0, size), max: size} }

// Write appends p and drops the oldest bytes if necessary. It never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(p)
	if len(p) > t.max {
		p, t.cut = p[len(p)-t.max:], true
	}
	if room := t.max - len(t.buf); room > 0 {
		k := min(room, len(p))
		t.buf = append(t.buf, p[:k]...)
		p = p[k:]
	}
	if len(p) > 0 {
		t.cut = true
	}
	for len(p) > 0 {
		k := copy(t.buf[t.next:], p)
		t.next = (t.next + k) % t.max
		p = p[k:]
	}
	return n, nil
}

// Bytes returns the kept bytes without a copy. The caller must not write to the Tail afterwards.
func (t *Tail) Bytes() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.next != 0 {
		reverse(t.buf[:t.next])
		reverse(t.buf[t.next:])
		reverse(t.buf)
		t.next = 0
	}
	return t.buf
}

// Cut reports whether the Tail has dropped bytes.
func (t *Tail) Cut() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cut
}

func reverse(b []byte) {
	for i, k := 0, len(b)-1; i < k; i, k = i+1, k-1 {
		b[i], b[k] = b[k], b[i]
	}
}
