package gpu

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Probe is the program that tells of a machine's GPUs: pai-nvml, or pai-agent amdgpu. It is one of its own since it hangs where a GPU or its driver
// does, and not even SIGKILL ends a program that hangs within the driver.
type Probe struct {
	Path string
	Args []string
	// Silence is how long it may say nothing.
	Silence time.Duration
	// Pause is how long it stays away after it has ended.
	Pause time.Duration
}

// maxLine bounds a report: 1,024 GPUs with all their measurements.
const maxLine = 8 << 20

// Watch runs the program until ctx ends. It calls see with each report, and failed with the reason whenever there are none: once for each time
// that the program ends, or falls silent.
func (p *Probe) Watch(ctx context.Context, see func(*Report), failed func(error)) {
	for ctx.Err() == nil {
		err := p.run(ctx, see, failed)
		if ctx.Err() != nil {
			return
		}
		failed(err)
		select {
		case <-ctx.Done():
		case <-time.After(p.Pause):
		}
	}
}

// run runs it once, and returns why it ended. Where it hangs it returns no sooner than it is gone: a second one would hang as well.
func (p *Probe) run(ctx context.Context, see func(*Report), failed func(error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	said := &lastLine{}
	cmd := exec.CommandContext(ctx, p.Path, p.Args...)
	cmd.Stderr = said
	cmd.WaitDelay = time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	silent := time.AfterFunc(p.Silence, func() {
		failed(fmt.Errorf("the driver hasn't answered for %s", p.Silence))
		cancel()
	})
	defer silent.Stop()
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var r Report
		if err = json.Unmarshal(lines.Bytes(), &r); err != nil {
			err = fmt.Errorf("%s writes what isn't a report: %w", p.Path, err)
			break
		}
		if silent.Reset(p.Silence) {
			see(&r)
		}
	}
	if err == nil {
		err = lines.Err()
	}
	cancel()
	_, _ = io.Copy(io.Discard, out)
	ended := cmd.Wait()
	if text := said.text(); text != "" {
		return errors.New(text)
	}
	if err == nil {
		err = fmt.Errorf("%s has ended: %w", p.Path, errors.Join(ended, context.Cause(ctx)))
	}
	return err
}

// lastLine keeps the last line that is written to it.
type lastLine struct {
	mu   sync.Mutex
	line []byte
}

const longestLine = 1000

// Write implements io.Writer.
func (l *lastLine) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.line = append(l.line, b...)
	for {
		i := strings.IndexByte(string(l.line), '\n')
		if i < 0 || i == len(l.line)-1 {
			break
		}
		l.line = l.line[i+1:]
	}
	l.line = l.line[max(0, len(l.line)-longestLine):]
	return len(b), nil
}

// text is the line, without the name of the program that it begins with.
func (l *lastLine) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := strings.TrimPrefix(strings.TrimSpace(string(l.line)), "pai-nvml: ")
	return strings.TrimPrefix(text, "pai-agent: ")
}
