// gpu-check compares the values that paictl reads from the NVIDIA GPUs of this machine with the values of nvidia-smi, without Kubernetes. It writes
// a report for docs/hardware.md. hack/gpu-check.sh builds gpu-check and the programs that gpu-check runs. It changes no settings of the GPUs.
//
//	gpu-check --out report
//
// It exits with 0 if nothing differs, 1 if something differs or fails, 2 for wrong arguments, and 3 if the machine has no NVIDIA device or no
// driver.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// These are the exit codes.
const (
	exitDiffers = 1
	exitUsage   = 2
	exitNone    = 3
)

// options holds the flags of the command.
type options struct {
	root, out                               string
	smi, probe, ctk, hook, agent, cuda, oci string
	measure                                 time.Duration
	load                                    bool
}

func parse(args []string, out io.Writer) (*options, error) {
	beside := func(name string) string {
		self, err := os.Executable()
		if err != nil {
			return name
		}
		return filepath.Join(filepath.Dir(self), name)
	}
	o := &options{}
	fs := flag.NewFlagSet("gpu-check", flag.ContinueOnError)
	fs.SetOutput(out)
	fs.StringVar(&o.out, "out", ".", "folder for report.md and report.json")
	fs.StringVar(&o.root, "root", "/", "the machine's root folder; tests use another")
	fs.StringVar(&o.smi, "nvidia-smi", "nvidia-smi", "the driver's program")
	fs.StringVar(&o.probe, "pai-nvml", beside("pai-nvml"), "paictl's program that reads GPUs")
	fs.StringVar(&o.ctk, "nvidia-ctk", beside("nvidia-ctk"), "NVIDIA's program that reports which files containers need")
	fs.StringVar(&o.hook, "hook", beside("nvidia-cdi-hook"), "NVIDIA's program that runs before a container starts")
	fs.StringVar(&o.agent, "pai-agent", beside("pai-agent"), "paictl's agent, whose time and memory are measured")
	fs.StringVar(&o.cuda, "cuda", beside("cuda-check"), "program with CUDA to run in a container")
	fs.StringVar(&o.oci, "runtime", "runc", "container runtime with the command line of runc")
	fs.DurationVar(&o.measure, "measure", 30*time.Second, "how long to measure each program; 0 skips it")
	fs.BoolVar(&o.load, "load-module", false, "load the module nvidia-uvm and create its device files if they are missing, as the agent does")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	switch {
	case fs.NArg() > 0:
		return nil, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	case o.measure < 0:
		return nil, fmt.Errorf("--measure is %s; it must not be negative", o.measure)
	}
	return o, nil
}

func run(ctx context.Context, args []string, out, errs io.Writer) int {
	o, err := parse(args, errs)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(errs, "gpu-check:", err)
		return exitUsage
	}
	r, err := o.check(ctx)
	if err != nil {
		fmt.Fprintln(errs, "gpu-check:", err)
		var none *noneError
		if errors.As(err, &none) {
			return exitNone
		}
		return exitDiffers
	}
	if err := r.write(o.out); err != nil {
		fmt.Fprintln(errs, "gpu-check:", err)
		return exitDiffers
	}
	fmt.Fprintf(out, "%s\nreport: %s\n", r.summary(), filepath.Join(o.out, "report.md"))
	if r.failed() {
		return exitDiffers
	}
	return 0
}

// check runs all checks. It returns an error if nothing can be compared.
func (o *options) check(ctx context.Context) (*report, error) {
	m, err := inspect(o.root)
	if err != nil {
		return nil, err
	}
	r := &report{At: time.Now().UTC().Truncate(time.Second), Machine: *m}
	before, err := o.ask(ctx)
	if err != nil {
		return nil, fmt.Errorf("pai-nvml: %w", err)
	}
	s, err := o.askSMI(ctx)
	if err != nil {
		return nil, err
	}
	after, err := o.ask(ctx)
	if err != nil {
		return nil, fmt.Errorf("pai-nvml: %w", err)
	}
	r.Driver, r.CUDA = after.Driver, after.CUDA
	for _, g := range after.GPUs {
		r.Models = append(r.Models, g.Model)
	}
	r.compare(m, before, after, s)
	edits := o.checkCDI(ctx, r, after)
	o.checkContainer(ctx, r, after, edits)
	o.checkCost(ctx, r, after)
	return r, nil
}
