package gpu

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
)

// Probe runs the program that reports a machine's GPUs: pai-nvml, or pai-agent amdgpu. The program is a separate process because it hangs if a GPU or
// the driver hangs. Even SIGKILL doesn't stop a process that hangs in the driver.
type Probe struct {
	Path string
	Args []string
	// Silence is the maximum time without output. After this time, the program is stopped.
	Silence time.Duration
	// Pause is the time between the exit and the next start of the program.
	Pause time.Duration

	// gate is locked while the program runs, and while a caller of Hold prevents the program from running.
	gate sync.Mutex
	mu   sync.Mutex
	// end stops the running program for a caller of Hold. end is nil if the program isn't running.
	end  context.CancelFunc
	held bool
}

// Hold stops the program and prevents the program from running until the caller calls resume. Callers need this because the program opens all GPUs.
// Hold fails if the program doesn't stop.
func (p *Probe) Hold(ctx context.Context) (resume func(), err error) {
	p.mu.Lock()
	if p.held {
		p.mu.Unlock()
		return nil, errors.New("another operation on a GPU of the machine is in progress")
	}
	p.held = true
	if p.end != nil {
		p.end()
	}
	p.mu.Unlock()
	free := func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.held = false
		p.gate.Unlock()
	}
	got := make(chan struct{})
	go func() {
		p.gate.Lock()
		close(got)
	}()
	select {
	case <-got:
		return free, nil
	case <-ctx.Done():
		go func() { <-got; free() }() // when the driver responds
		return nil, fmt.Errorf("the driver hangs: %s doesn't end", p.Path)
	}
}

// heldPause is a pause during which a caller of Hold can lock the gate.
const heldPause = 10 * time.Millisecond

// isHeld reports whether a caller of Hold waits for the exit of the program or prevents it from running.
func (p *Probe) isHeld() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held
}

// Once runs the program with additional arguments and returns the output. Only a caller of Hold may call Once. The error is the last line of stderr.
func (p *Probe) Once(ctx context.Context, args ...string) ([]byte, error) {
	said := &lastLine{}
	cmd := exec.CommandContext(ctx, p.Path, append(slices.Clone(p.Args), args...)...)
	cmd.Stderr, cmd.WaitDelay = said, time.Second
	type answer struct {
		out []byte
		err error
	}
	ended := make(chan answer, 1)
	go func() {
		out, err := cmd.Output()
		if text := said.text(); err != nil && text != "" {
			err = errors.New(text)
		}
		ended <- answer{out, err}
	}()
	select {
	case a := <-ended:
		return a.out, a.err
	case <-ctx.Done():
	}
	// SIGKILL doesn't stop a program that hangs in the driver, so don't wait for the program.
	select {
	case a := <-ended:
		return a.out, cmp.Or(context.Cause(ctx), a.err)
	case <-time.After(2 * time.Second):
		return nil, fmt.Errorf("the driver hangs: %s doesn't end", p.Path)
	}
}

// maxLine is the maximum size of a report. maxLine is sufficient for 1,024 GPUs with all measurements.
const maxLine = 8 << 20

// Watch runs the program until ctx ends. Watch calls see with each report. When the program exits or writes no output for too long, Watch calls
// failed with the reason.
func (p *Probe) Watch(ctx context.Context, see func(*Report), failed func(error)) {
	for ctx.Err() == nil {
		err := p.run(ctx, see, failed)
		if ctx.Err() != nil {
			return
		}
		if p.isHeld() { // Hold has stopped the program
			time.Sleep(heldPause)
			continue
		}
		failed(err)
		select {
		case <-ctx.Done():
		case <-time.After(p.Pause):
		}
	}
}

// run runs the program once, and returns the reason why it ended. If the program hangs, run waits for the exit, because a second program would also
// hang.
func (p *Probe) run(ctx context.Context, see func(*Report), failed func(error)) error {
	p.gate.Lock()
	defer p.gate.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p.mu.Lock()
	p.end = cancel
	held := p.held // a caller of Hold waits for the gate
	p.mu.Unlock()
	if held {
		return errors.New("it is kept from running")
	}
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
			err = fmt.Errorf("the output of %s is not a report: %w", p.Path, err)
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

// lastLine is a writer that keeps only the last line.
type lastLine struct {
	mu   sync.Mutex
	line []byte
}

const longestLine = 1000

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

// text returns the last line without the prefix with the program's name.
func (l *lastLine) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := strings.TrimPrefix(strings.TrimSpace(string(l.line)), "pai-nvml: ")
	return strings.TrimPrefix(text, "pai-agent: ")
}
