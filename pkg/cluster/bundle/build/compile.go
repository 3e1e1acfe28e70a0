package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/openpai/paictl/pkg/hint"
)

// tailLines is the number of lines shown from the end of a failed compiler's output.
const tailLines = 20

type compiler struct {
	arch string // GOARCH
	work string // for logs, temporary files, programs
}

// env returns the environment for the compilers. It omits variables that could make the result differ between machines.
func (c compiler) env(cgo bool) []string {
	var env []string
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		switch {
		case strings.HasPrefix(name, "CGO_"), strings.HasPrefix(name, "LC_"):
		case name == "GOFLAGS", name == "GOWORK", name == "GOEXPERIMENT", name == "LANG":
		case name == "CC", name == "CXX", name == "CFLAGS", name == "LDFLAGS":
		default:
			env = append(env, kv)
		}
	}
	enabled := "0"
	if cgo {
		enabled = "1"
	}
	if os.Getenv("GOGC") == "" {
		env = append(env, "GOGC=400") // a sixth less work for the compiler, for a few hundred MB more memory
	}
	return append(env, "GOFLAGS=", "GOWORK=off", "GOOS=linux", "GOARCH="+c.arch, "GOAMD64=v1", "GOARM64=v8.0",
		"CGO_ENABLED="+enabled, "CC=gcc", "LC_ALL=C", "GOTMPDIR="+c.tmp(), "TMPDIR="+c.tmp())
}

func (c compiler) tmp() string { return filepath.Join(c.work, "tmp") }

func (c compiler) out(program string) string { return filepath.Join(c.work, "programs", program) }

// ldflags returns linker flags that remove symbols and all data that would differ between two builds.
func ldflags(m Module, version string) string {
	flags := "-s -w -buildid="
	switch {
	case m.Dynamic:
		flags += " -linkmode external -extldflags '-Wl,--build-id=none'"
	case m.CGO:
		flags += " -linkmode external -extldflags '-static -Wl,--build-id=none'"
	}
	if m.LDFlags != "" {
		flags += " " + expand(m.LDFlags, version)
	}
	return flags
}

// compile builds the given programs of a module with a single go command.
func (c compiler) compile(ctx context.Context, m Module, p pin, programs []Program) error {
	for _, dir := range []string{c.tmp(), c.out(""), filepath.Join(c.work, "go-out")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("build %s: %w", m.Name, err)
		}
	}
	var packages []string
	for _, prog := range programs {
		if prog.C == "" {
			packages = append(packages, packageOf(m, prog))
			continue
		}
		if err := c.compileC(ctx, m, p, prog); err != nil {
			return err
		}
	}
	if len(packages) == 0 {
		return nil
	}
	outDir := filepath.Join(c.work, "go-out")
	// Omit debug information. The linker would remove it anyway, and it takes a tenth of the compiler's time.
	args := []string{"build", "-trimpath", "-gcflags=all=-dwarf=false", "-buildvcs=false", "-mod=readonly", "-tags", m.Tags,
		"-ldflags", ldflags(m, p.version), "-o", outDir + string(filepath.Separator)}
	if m.ModFile != "" {
		args = append(args, "-modfile", m.ModFile)
	}
	if err := c.run(ctx, m.Name, p.dir, m.CGO, "go", append(args, packages...)...); err != nil {
		return err
	}
	for _, prog := range programs {
		if prog.C != "" {
			continue
		}
		if err := os.Rename(filepath.Join(outDir, executable(packageOf(m, prog))), c.out(prog.Name)); err != nil {
			return fmt.Errorf("build %s: %w", prog.Name, err)
		}
	}
	return nil
}

func packageOf(m Module, p Program) string {
	if p.Package == "" {
		return m.Path
	}
	return p.Package
}

// executable returns the name that the go command gives to a program: the last element of its import path that isn't a major version.
func executable(pkg string) string {
	parts := strings.Split(pkg, "/")
	last := parts[len(parts)-1]
	if len(parts) > 1 && len(last) > 1 && last[0] == 'v' && strings.Trim(last[1:], "0123456789") == "" {
		return parts[len(parts)-2]
	}
	return last
}

func (c compiler) compileC(ctx context.Context, m Module, p pin, prog Program) error {
	root, err := c.output(ctx, p.dir, "go", "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", m.Path)
	if err != nil {
		return err
	}
	if root == "" {
		if err := c.run(ctx, prog.Name, p.dir, false, "go", "mod", "download", m.Path); err != nil {
			return err
		}
		if root, err = c.output(ctx, p.dir, "go", "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", m.Path); err != nil {
			return err
		}
	}
	src := filepath.Join(root, filepath.FromSlash(prog.C))
	return c.run(ctx, prog.Name, filepath.Dir(src), true, "gcc", "-Os", "-Wall", "-Werror", "-static", "-s", "-Wl,--build-id=none",
		"-DVERSION=v"+strings.TrimPrefix(prog.Version, "v"), "-o", c.out(prog.Name), filepath.Base(src))
}

// run runs a compiler, with its output in a log file. When ctx ends, it kills the whole process group, because the go command doesn't kill its child
// processes.
func (c compiler) run(ctx context.Context, name, dir string, cgo bool, command string, args ...string) error {
	logFile := filepath.Join(c.work, name+".log")
	log, err := os.Create(logFile)
	if err != nil {
		return fmt.Errorf("build %s: %w", name, err)
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, command, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, c.env(cgo), log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	err = cmd.Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return hint.Errorf("the whole output is in "+logFile, "build %s: %s: %w\n%s", name, command, err, tail(logFile))
	}
	return nil
}

func (c compiler) output(ctx context.Context, dir, command string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, command, args...)
	cmd.Dir, cmd.Env = dir, c.env(true)
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if ee, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("%s %s: %w: %s", command, args[0], err, strings.TrimSpace(string(ee.Stderr)))
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", command, err)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimSpace(line), nil
}

// tail returns the last lines of a log, indented. It returns "" if the log can't be read.
func tail(file string) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	if len(lines) > tailLines {
		lines = lines[len(lines)-tailLines:]
	}
	return "    " + strings.Join(lines, "\n    ")
}
