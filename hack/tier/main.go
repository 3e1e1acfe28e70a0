// Command tier runs one tier of the checks of this repository: the gate, "more", "hosts", or "conformance". CONTRIBUTING.md describes their contents.
// For each tier, it prints the same kind of summary, and writes a report to the folder reports. The exit status is 1 if a step failed, and 2 if the
// command line is wrong.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const module = "github.com/openpai/paictl"

const usage = `Usage: go run ./hack/tier [flags] gate|more|hosts|conformance

  gate    what each change must pass: "make test"
  more    real servers, the race detector, the whole linter: "make test-more"
  hosts   all tests on sandbox hosts: "make test-hosts"
  conformance
          Kubernetes' conformance tests on sandbox hosts: "make conformance"

`

// step is a part of a tier. If a step fails, the later steps still run.
type step struct {
	name  string
	run   func(context.Context, *runner) error
	setup bool // later steps need it: it runs also if it passed in the run that this one continues
}

// tiers returns the steps of each tier.
func tiers() map[string][]step {
	return map[string][]step{"gate": gate(), "more": more(), "hosts": hosts(), "conformance": conformance()}
}

// runner holds the state of one run of a tier.
type runner struct {
	tier       string
	out        io.Writer
	env        []string // the environment of all commands
	fresh      bool     // run tests whose result is cached, too
	quarantine quarantine
	report     *report
	since      *report // an earlier run on the same tree, which this one continues
	groups     []int   // groups of processes that were started
}

func main() { os.Exit(start()) }

func start() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	return run(ctx, os.Args[1:], os.Stdout, os.Stderr)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("tier", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() { fmt.Fprint(stderr, usage); flags.PrintDefaults() }
	fresh := flags.Bool("fresh", false, "run tests whose result is cached, too")
	since := flags.String("since", "", `continue an earlier run on the same tree, without the steps and packages that passed: "last", or the file of its report`)
	only := flags.String("only", "", "run only the steps whose names contain this text")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	steps, known := tiers()[flags.Arg(0)]
	if !known || flags.NArg() != 1 {
		flags.Usage()
		return 2
	}
	if *since != "" && flags.Arg(0) == "gate" {
		fmt.Fprintln(stderr, "tier: the gate runs whole; only the other tiers can be continued with --since")
		return 2
	}
	if !slices.ContainsFunc(steps, func(s step) bool { return strings.Contains(s.name, *only) }) {
		fmt.Fprintf(stderr, "tier: no step of %s has a name with %q\n", flags.Arg(0), *only)
		return 2
	}
	r := &runner{tier: flags.Arg(0), out: stdout, env: environment(os.Environ(), flags.Arg(0)), fresh: *fresh}
	if err := r.prepare(ctx, *since); err != nil {
		fmt.Fprintln(stderr, "tier:", err)
		return 1
	}
	r.report.Only = *only
	code := r.all(ctx, steps, *only)
	if ctx.Err() != nil {
		r.end(patience)
	}
	return code
}

// patience is how long programs may take to end after SIGTERM. Tests on hosts need this time to remove their hosts.
const patience = 2 * time.Minute

// end waits until all started processes have ended. It kills the processes that haven't ended within patience.
func (r *runner) end(patience time.Duration) {
	late := time.Now().Add(patience)
	for _, group := range r.groups {
		for syscall.Kill(-group, 0) == nil && time.Now().Before(late) {
			time.Sleep(100 * time.Millisecond)
		}
		_ = syscall.Kill(-group, syscall.SIGKILL)
	}
}

// prepare changes to the root of the repository, reads the quarantine, and begins the report.
func (r *runner) prepare(ctx context.Context, since string) error {
	root, err := git(ctx, nil, "rev-parse", "--show-toplevel")
	if err == nil {
		err = os.Chdir(root)
	}
	if err != nil {
		return fmt.Errorf("find the root of the repository: %w", err)
	}
	if r.quarantine, err = readQuarantine(quarantineFile); err != nil {
		return err
	}
	if r.report, err = newReport(ctx, r.tier, time.Now()); err != nil {
		return err
	}
	if r.tier == "hosts" || r.tier == "conformance" {
		if r.report.Platform.System, err = systemOfHosts(r.report.Platform.System, os.Getenv("PAICTL_TEST_RELEASE")); err != nil {
			return err
		}
	}
	if since == "" {
		return nil
	}
	if r.since, err = readReport(since, r.report); err == nil {
		r.report.resume(r.since)
	}
	return err
}

// all runs the steps, prints the summary, and returns the exit code.
func (r *runner) all(ctx context.Context, steps []step, only string) int {
	for _, s := range steps {
		if ctx.Err() != nil || !s.setup && !strings.Contains(s.name, only) {
			continue
		}
		r.step(ctx, s)
	}
	if err := errors.Join(r.quarantine.check(time.Now()), r.quarantine.lost(".")); err != nil {
		r.report.Steps = append(r.report.Steps, stepResult{Name: "quarantine", Error: err.Error()})
	}
	r.report.Finished = ctx.Err() == nil
	r.report.Platform.Kubernetes = kubernetesOf(r.bundleOf())
	file, err := r.report.write()
	r.report.summary(r.out, r.quarantine)
	if err != nil {
		fmt.Fprintln(r.out, "tier: write the report:", err)
		return 1
	}
	fmt.Fprintln(r.out, "report:", file)
	if r.report.failed() || !r.report.Finished {
		return 1
	}
	return 0
}

// step runs one step, unless the step has passed in the earlier run that this run continues.
func (r *runner) step(ctx context.Context, s step) {
	start := time.Now()
	fmt.Fprintf(r.out, "== %s  [%.0fs]\n", s.name, start.Sub(r.report.Started).Seconds())
	result := stepResult{Name: s.name}
	r.report.step = s.name
	skipped := len(r.report.Skipped)
	if !s.setup && r.since.passed(s.name) {
		result.Earlier = true
		fmt.Fprintln(r.out, "passed earlier on this tree")
	} else if err := s.run(ctx, r); err != nil {
		var absent skippedError
		if errors.As(err, &absent) {
			result.Skipped = absent.reason
			fmt.Fprintf(r.out, "skip\t%s: %s\n", s.name, absent.reason)
		} else {
			result.Error = err.Error()
			fmt.Fprintf(r.out, "FAILED: %s: %v\n", s.name, err)
		}
	}
	result.Seconds = time.Since(start).Seconds()
	result.Skips = slices.ContainsFunc(r.report.Skipped[skipped:], func(s skip) bool { return !s.later() })
	r.report.Steps = append(r.report.Steps, result)
	if _, err := r.report.write(); err != nil { // an interrupted run can be continued
		fmt.Fprintln(r.out, "tier: write the report:", err)
	}
}

// skippedError is the error of a step that this machine can't run.
type skippedError struct{ reason string }

func (e skippedError) Error() string { return e.reason }

// command returns a command. When the run is interrupted, the command ends together with all processes that it has started.
func (r *runner) command(ctx context.Context, env []string, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(append([]string{}, r.env...), env...)
	cmd.Stdout, cmd.Stderr = r.out, r.out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM} // the signal comes if the tier is killed
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// exec runs a command, and prints its output.
func (r *runner) exec(ctx context.Context, name string, args ...string) error {
	if err := r.command(ctx, nil, name, args...).Run(); err != nil {
		return fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return nil
}

// output runs a command, and returns its output, even if the command fails.
func (r *runner) output(ctx context.Context, env []string, name string, args ...string) (string, error) {
	cmd := r.command(ctx, env, name, args...)
	cmd.Stdout = nil
	out, err := cmd.Output()
	if err != nil {
		return string(out), fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return string(out), nil
}

// environment returns the environment for the commands of a tier. The programs, the tests and the linter use the same build flags as paictl, so that
// each library is compiled only once. The gate ignores settings of paictl in the environment, so that it runs the same tests everywhere.
func environment(from []string, tier string) []string {
	var out []string
	flags := ""
	for _, kv := range from {
		name, value, _ := strings.Cut(kv, "=")
		switch {
		case name == "GOFLAGS":
			flags = modules(value)
		case name == "CGO_ENABLED", name == "GOOS", name == "GOARCH", name == "GOWORK", name == "GODEBUG":
		case gitsOwn(name), tier == "gate" && strings.HasPrefix(name, "PAICTL_"):
		default:
			out = append(out, kv)
		}
	}
	// Most of the time is spent on compiling, and a sixth of that on the compiler's garbage collection.
	if os.Getenv("GOGC") == "" {
		out = append(out, "GOGC=400")
	}
	return append(append(out, owned()...), "GOWORK=off", "CGO_ENABLED=0", "GOFLAGS="+flags+"-trimpath -gcflags=all=-dwarf=false")
}

// modules returns those flags in the user's GOFLAGS that specify the source of modules. Other flags, such as -run, would change the tests.
func modules(flags string) (out string) {
	for flag := range strings.FieldsSeq(flags) {
		if strings.HasPrefix(flag, "-mod=") || strings.HasPrefix(flag, "-modcacherw") || strings.HasPrefix(flag, "-p=") {
			out += flag + " "
		}
	}
	return out
}

// cache returns the folder for tools and bundles, which are built once.
func cache() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = "/root/.cache"
	}
	return filepath.Join(dir, "paictl")
}
