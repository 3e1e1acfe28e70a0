package page

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// These are the marks of "console" blocks that a session uses. The text of a mark is a reason or a command.
const (
	// NotRun marks a block that isn't run on the test's machines. Its text is the reason.
	NotRun = "notrun"
	// Instead contains a command that is run instead of the block, because the reader's machines differ from the test's machines.
	Instead = "instead"
	// Before contains a command that is run before the block. It prepares the test for things that the reader already has.
	Before = "before"
)

// Session is a shell that runs the commands of a page. It keeps its folder and its variables between commands.
type Session struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	dir   string // the folder of scripts
	steps int
}

// Open starts a shell in a folder. The shell ends when the context ends, or when Close is called.
func Open(ctx context.Context, dir string, env []string) (*Session, error) {
	scripts, err := os.MkdirTemp("", "paictl-page-")
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "bash", "--noprofile", "--norc")
	cmd.Dir, cmd.Env = dir, env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // its child processes end with it
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = write, write
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	_ = write.Close() // the shell has it
	return &Session{cmd: cmd, in: in, out: bufio.NewReader(read), dir: scripts}, nil
}

// Close ends the shell.
func (s *Session) Close() {
	_ = s.in.Close()
	_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
	_ = s.cmd.Wait()
	_ = os.RemoveAll(s.dir)
}

// Run runs one command, and returns its output and its exit status. The command has no standard input.
func (s *Session) Run(command string) (output string, status int, err error) {
	s.steps++
	file := filepath.Join(s.dir, fmt.Sprintf("step-%d", s.steps))
	if err := os.WriteFile(file, []byte(command+"\n"), 0o600); err != nil {
		return "", 0, err
	}
	end := fmt.Sprintf("\x01end of step %d: ", s.steps)
	if _, err := fmt.Fprintf(s.in, ". '%s' </dev/null\nprintf '\\n%s%%d\\n' $?\n", file, end); err != nil {
		return "", 0, err
	}
	var b strings.Builder
	for {
		line, err := s.out.ReadString('\n')
		if rest, ok := strings.CutPrefix(line, end); ok {
			_, err := fmt.Sscan(rest, &status)
			return strings.TrimSuffix(b.String(), "\n"), status, err
		}
		b.WriteString(line)
		if err != nil {
			return b.String(), 0, fmt.Errorf("the shell ended: %w", err)
		}
	}
}

// Play runs the steps of a page. Each step must succeed and print the text on the page. Play calls say with each command and its output.
func (s *Session) Play(steps []Step, say func(format string, args ...any)) error {
	block := 0 // the line of the block that is at work
	for _, step := range steps {
		marks := step.Block.Marks
		if marks[NotRun] != "" {
			continue
		}
		commands := []Step{step}
		if marks[Instead] != "" {
			commands = nil
		}
		if step.Block.Line != block {
			block = step.Block.Line
			for _, command := range []string{marks[Instead], marks[Before]} {
				if command != "" {
					commands = append([]Step{{Block: step.Block, Line: step.Line, Command: command}}, commands...)
				}
			}
		}
		for _, c := range commands {
			say("%s:%d: $ %s", c.Block.Page, c.Line, c.Command)
			output, status, err := s.Run(c.Command)
			say("%s", output)
			if err == nil && status != 0 {
				err = fmt.Errorf("it ended with %d:\n%s", status, output)
			}
			if missing := Missing(c.Shows, output); err == nil && missing != "" {
				err = fmt.Errorf("the page shows %q; it printed:\n%s", missing, output)
			}
			if err != nil {
				return fmt.Errorf("%s:%d: %s: %w", c.Block.Page, c.Line, c.Command, err)
			}
		}
	}
	return nil
}

// Missing returns the first of the shown lines that is missing in the output, or "" if the output contains all of them in their order. "…" in a line
// matches any text. The number of spaces between words makes no difference.
func Missing(shown []string, output string) string {
	lines := strings.Split(output, "\n")
	for _, want := range shown {
		words := strings.Fields(want)
		for i, w := range words {
			words[i] = strings.ReplaceAll(regexp.QuoteMeta(w), "…", ".*")
		}
		pattern := regexp.MustCompile(`^\s*` + strings.Join(words, `\s+`) + `\s*$`)
		at := -1
		for i, line := range lines {
			if pattern.MatchString(line) {
				at = i
				break
			}
		}
		if at < 0 {
			return want
		}
		lines = lines[at+1:]
	}
	return ""
}
