package kubelet

import (
	"bytes"
	"strings"
	"sync"
	"time"
)

// line is a line of a log, with the newline at its end.
type line struct {
	at   time.Time
	text string
}

// log is the output of a container.
type log struct {
	mu    sync.Mutex
	lines []line
	rest  []byte        // the begin of a line that isn't complete
	more  chan struct{} // closed and replaced when there is more
	over  bool
}

func newLog() *log { return &log{more: make(chan struct{})} }

// Write takes output of the container.
func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, b...)
	for {
		i := bytes.IndexByte(l.rest, '\n')
		if i < 0 {
			break
		}
		l.lines = append(l.lines, line{time.Now(), string(l.rest[:i+1])})
		l.rest = l.rest[i+1:]
	}
	l.wake()
	return len(b), nil
}

// wake is called with the lock held.
func (l *log) wake() {
	close(l.more)
	l.more = make(chan struct{})
}

// close ends the log. A last line without an end is one, too. It may be called again.
func (l *log) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return
	}
	if len(l.rest) > 0 {
		l.lines = append(l.lines, line{time.Now(), string(l.rest)})
		l.rest = nil
	}
	l.over = true
	l.wake()
}

// from returns the lines from a number on, whether they are the last, and a channel that is closed when there are more.
func (l *log) from(n int) (lines []line, over bool, more <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines[n:], l.over, l.more
}

func (l *log) text() string {
	lines, _, _ := l.from(0)
	var b strings.Builder
	for _, one := range lines {
		b.WriteString(one.text)
	}
	return b.String()
}
