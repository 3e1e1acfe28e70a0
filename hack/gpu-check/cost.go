package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/openpai/paictl/pkg/node/agent/gpu"
)

// cost holds the processor time and the memory of a program while the program watches the GPUs.
type cost struct {
	Program string  `json:"program"`
	Seconds float64 `json:"seconds"`
	CPU     float64 `json:"cpu"`    // percent of a core
	Memory  float64 `json:"memory"` // MiB, at most
}

// checkCost measures pai-nvml and the agent. The agent runs without an API server, but it reads the GPUs and serves its metrics.
func (o *options) checkCost(ctx context.Context, r *report, gpus *gpu.Report) {
	if o.measure == 0 {
		r.add("cost", "pai-nvml and pai-agent", verdictNotRun, "", "--measure=0")
		return
	}
	c, err := o.measured(ctx, exec.CommandContext(ctx, o.probe, "--root", o.root), nil)
	r.cost("pai-nvml", c, err)
	switch _, err := os.Stat(o.agent); {
	case err != nil:
		r.add("cost", "pai-agent", verdictNotRun, "", "pai-agent is missing")
		return
	case len(gpus.GPUs) == 0:
		r.add("cost", "pai-agent", verdictNotRun, "", "pai-nvml sees no GPU")
		return
	}
	c, err = o.measuredAgent(ctx, r, gpus)
	r.cost("pai-agent, with its pai-nvml", c, err)
}

func (r *report) cost(name string, c cost, err error) {
	if err != nil {
		r.add("cost", name, verdictFailed, "", err.Error())
		return
	}
	c.Program = name
	r.Costs = append(r.Costs, c)
}

// measured runs a program for the duration of a measurement. beside runs at the same time. The processor time includes the children of the program.
// The memory is that of the largest of these processes.
func (o *options) measured(ctx context.Context, cmd *exec.Cmd, beside func(context.Context) error) (cost, error) {
	said := &strings.Builder{}
	cmd.Stderr, cmd.WaitDelay = said, 5*time.Second
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return cost{}, err
	}
	limit, cancel := context.WithTimeout(ctx, o.measure)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var failed error
	if beside != nil {
		failed = beside(limit)
	}
	select {
	case err := <-ended:
		return cost{}, fmt.Errorf("it ended: %w: %s", errors.Join(err, failed), firstLine(said.String()))
	case <-limit.Done():
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(stopping):
		_ = cmd.Process.Kill()
		return cost{}, fmt.Errorf("it hasn't stopped for %s: a GPU or its driver hangs", stopping)
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return cost{}, errors.New("the system doesn't count its time")
	}
	seconds := time.Since(start).Seconds()
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return cost{Seconds: seconds, CPU: 100 * used.Seconds() / seconds, Memory: float64(usage.Maxrss) / 1024}, failed
}

// measuredAgent measures the agent, which runs with separate folders and with the address of an API server that doesn't respond.
func (o *options) measuredAgent(ctx context.Context, r *report, gpus *gpu.Report) (cost, error) {
	dir, err := os.MkdirTemp("", "gpu-check-") // the path of a socket can't be long
	if err != nil {
		return cost{}, err
	}
	defer os.RemoveAll(dir)
	in := func(name string) string { return filepath.Join(dir, name) }
	machines, err := json.Marshal(map[string]gpu.Machine{"this": {Model: gpus.GPUs[0].Model, Count: len(gpus.GPUs)}})
	if err != nil {
		return cost{}, err
	}
	const nowhere = `{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c"}}],"clusters":[{"name":"c","cluster":{"server":"http://127.0.0.1:1"}}]}`
	for name, data := range map[string]string{"machines.json": string(machines), "kubeconfig": nowhere, "hook": "#!/bin/sh\n"} {
		if err := os.WriteFile(in(name), []byte(data), 0o700); err != nil {
			return cost{}, err
		}
	}
	if err := os.Mkdir(in("plugins_registry"), 0o700); err != nil {
		return cost{}, err
	}
	at, err := free(ctx)
	if err != nil {
		return cost{}, err
	}
	cmd := exec.CommandContext(ctx, o.agent, "--node=this", "--machines="+in("machines.json"), "--probe="+o.probe, "--driver-root="+o.root, "--toolkit="+o.ctk, "--hook="+in("hook"),
		"--kubelet-folder="+dir, "--cdi-folder="+in("cdi"), "--notice-folder="+in("notices"), "--kubeconfig="+in("kubeconfig"), "--listen="+at)
	return o.measured(ctx, cmd, func(ctx context.Context) error { return r.scrape(ctx, at, gpus) })
}

func free(ctx context.Context) (string, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

const (
	stopping = 15 * time.Second
	scrapes  = 15 * time.Second // as Prometheus does
	retrying = 200 * time.Millisecond
	mostText = 64 << 20
)

// scrape reads the metrics of the agent until ctx ends, and compares the last of them with the GPUs.
func (r *report) scrape(ctx context.Context, at string, gpus *gpu.Report) error {
	var last string
	for ctx.Err() == nil {
		pause := scrapes
		text, err := get(ctx, "http://"+at+"/metrics")
		if err != nil {
			pause = retrying
		} else if last = text; len(measured(text)) == 0 {
			pause = retrying // the driver hasn't responded yet
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	have := measured(last)
	for _, g := range gpus.GPUs {
		subject := fmt.Sprintf("GPU %d", g.Index)
		names := have[g.UUID]
		if len(names) == 0 {
			r.add(subject, "measurements of pai-agent", verdictFailed, "missing", "")
			continue
		}
		r.add(subject, "measurements of pai-agent", verdictPassed, fmt.Sprintf("%d", len(names)), "")
	}
	return nil
}

var sample = regexp.MustCompile(`(?m)^(DCGM_\w+)\{([^}]*)\} `)

var uuidLabel = regexp.MustCompile(`UUID="([^"]+)"`)

// measured returns the names of the metrics in an output of the agent. The keys are the UUIDs of the GPUs.
func measured(text string) map[string][]string {
	out := map[string][]string{}
	for _, m := range sample.FindAllStringSubmatch(text, -1) {
		if of := uuidLabel.FindStringSubmatch(m[2]); of != nil {
			out[of[1]] = append(out[of[1]], m[1])
		}
	}
	return out
}

func get(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, mostText))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	}
	return string(data), err
}
