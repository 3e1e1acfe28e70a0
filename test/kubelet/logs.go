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

// log stores the output of a container.
type log struct {
	mu    sync.Mutex
	lines []line
	rest  []byte        // the begin of a line that isn't complete
	more  chan struct{} // closed and replaced when there is more
	over  bool
}

func newLog() *log { return &log{more: make(chan struct{})} }

// Write adds output of the container to the log.
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

// wake wakes the readers of the log. The caller must hold the lock.
func (l *log) wake() {
	close(l.more)
	l.more = make(chan struct{})
}

// close ends the log. If the last line is incomplete, it becomes a line of the log, too. close may be called again.
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

// from returns the lines from the number n on. over reports whether the log has ended. more is closed when there are new lines.
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
