// Package output collects the output of a program or a goroutine while a test reads it.
// In: writes. Out: the text that has been written so far.
package output

import (
	"bytes"
	"sync"
)

// Buffer is a buffer that several goroutines may use. The zero value is empty.
type Buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// String returns the text that has been written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
