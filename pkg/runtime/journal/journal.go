// Package journal writes the runtime's own messages and the output of plugins to the container's standard error, each line
// marked, and to a file with times. In: lines. Out: the log, the file, and the end of the file for the failure rules.
package journal

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/openpai/paictl/pkg/runtime/process"
	"github.com/openpai/paictl/pkg/runtime/spec"
)

// File is the path of the file with the runtime's messages.
const File = spec.Home + "/logs/runtime.log"

const (
	prefix = "[pai-runtime] "
	// maxFile is the maximum size of the file. A file of this size is renamed to File.1 and replaces an older File.1.
	maxFile = 10 << 20
	tailLen = 1 << 20
	maxLine = 64 << 10
)

// Journal is a log of messages. It is safe for concurrent use.
type Journal struct {
	mu   sync.Mutex // guards all fields below, and keeps lines whole
	err  io.Writer
	path string
	file *os.File
	size int64
	tail *process.Tail
	now  func() time.Time
}

// Open returns a journal that writes to stderr and, if possible, to the file at path.
func Open(stderr io.Writer, path string, now func() time.Time) *Journal {
	j := &Journal{err: stderr, path: path, tail: process.NewTail(tailLen), now: now}
	if err := j.open(); err != nil {
		j.Printf("the runtime's messages can't be stored and are only in this log: %v", err)
	}
	return j
}

func (j *Journal) open() error {
	if err := os.MkdirAll(filepath.Dir(j.path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(j.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	j.file, j.size = f, info.Size()
	return nil
}

// Stderr returns a writer to the container's standard error. Its output never splits a line of the journal.
func (j *Journal) Stderr() io.Writer { return stderr{j} }

type stderr struct{ j *Journal }

func (s stderr) Write(p []byte) (int, error) {
	s.j.mu.Lock()
	defer s.j.mu.Unlock()
	return s.j.err.Write(p)
}

// Printf writes one message, and marks each of its lines.
func (j *Journal) Printf(format string, args ...any) { j.print(true, format, args) }

// Notef writes a message only to the file. Such messages help in debugging, but would clutter the log of a successful job.
func (j *Journal) Notef(format string, args ...any) { j.print(false, format, args) }

func (j *Journal) print(shown bool, format string, args []any) {
	for line := range strings.Lines(fmt.Sprintf(format, args...)) {
		j.line([]byte(strings.TrimRight(line, "\r\n")), shown)
	}
}

func (j *Journal) line(text []byte, shown bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	marked := make([]byte, 0, len(prefix)+len(text)+1)
	marked = append(append(append(marked, prefix...), text...), '\n')
	if shown {
		_, _ = j.err.Write(marked) // an error can't be reported anywhere
	}
	_, _ = j.tail.Write(marked)
	if j.file == nil {
		return
	}
	n, err := fmt.Fprintf(j.file, "%s %s", j.now().UTC().Format(time.RFC3339Nano), marked)
	j.size += int64(n)
	if err != nil || j.size > maxFile {
		_ = j.file.Close()
		j.file = nil
		if err == nil && os.Rename(j.path, j.path+".1") == nil {
			_ = j.open() // without the file, the messages are still in the log
		}
	}
}

// Tail returns a copy of the last output, including the marks. Plugins in the background may continue to write.
func (j *Journal) Tail() []byte {
	j.mu.Lock()
	defer j.mu.Unlock()
	return bytes.Clone(j.tail.Bytes())
}

// Writer returns a writer for the output of a plugin. The writer marks each line. The caller must call Flush at the end.
func (j *Journal) Writer() *Writer { return &Writer{journal: j} }

// Writer splits the output of a plugin into lines.
type Writer struct {
	journal *Journal
	mu      sync.Mutex
	partial []byte
}

func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.partial = append(w.partial, p...)
	for {
		i := bytes.IndexByte(w.partial, '\n')
		if i < 0 && len(w.partial) < maxLine {
			return len(p), nil
		}
		if i < 0 || i >= maxLine {
			i = maxLine - 1
		}
		w.journal.line(bytes.TrimRight(w.partial[:i+1], "\r\n"), true)
		w.partial = w.partial[i+1:]
	}
}

// Flush writes the last line if the output doesn't end with a newline.
func (w *Writer) Flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.partial) > 0 {
		w.journal.line(w.partial, true)
		w.partial = nil
	}
}
