//go:build cgo

// Command pai-nvml prints the properties and the state of a machine's GPUs every few seconds, as a line of JSON. pai-agent starts it, and kills it
// if it hangs. With --split, it splits a GPU instead, and exits.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	nvidia "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/openpai/paictl/pkg/node/agent/gpu"
	"github.com/openpai/paictl/pkg/node/agent/nvml"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "pai-nvml:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	library := flag.String("library", "", "NVIDIA's management library; empty means the one below --root")
	root := flag.String("root", "/", "folder where the machine's root is mounted")
	node := flag.String("node", "", "name of the machine, with --simulated")
	simulated := flag.String("simulated", "", "file that says which machines pretend to have GPUs, as JSON; NVIDIA's library isn't asked then")
	faults := flag.String("faults", "", "file with the faults of simulated GPUs, as JSON")
	splits := flag.String("splits", "", "file that says how simulated GPUs are split, as JSON")
	split := flag.String("split", "", "PCI address of a GPU to split into instances (MIG) instead; the result is a line of JSON")
	var want gpu.Split
	flag.StringVar(&want.Profile, "profile", "", "profile of the instances, with --split; empty for a GPU in one piece")
	flag.IntVar(&want.Instances, "instances", 0, "how many instances, with --split")
	keep := flag.Bool("keep", false, "with --split: destroy no instance of the profile")
	every := flag.Duration("every", 2*time.Second, "how often it writes")
	flag.Parse()
	var c *nvml.Collector
	var err error
	if *simulated != "" {
		s, e := gpu.ReadMachine(*simulated, *node)
		if e != nil {
			return e
		}
		c, err = nvml.Simulate(*node, s, func() (map[int32]gpu.Fault, error) { return gpu.ReadFaults(*faults) },
			func() (map[int32]gpu.Split, error) { return gpu.ReadSplits(*splits) })
	} else {
		if *library == "" {
			if *library, err = nvml.FindLibrary(*root); err != nil {
				return err
			}
		}
		lib := nvidia.New(nvidia.WithLibraryPath(*library))
		if *split != "" {
			out, err := nvml.SplitBy(lib, *split, want, *keep)
			if err != nil {
				return err
			}
			return json.NewEncoder(os.Stdout).Encode(out)
		}
		c, err = nvml.New(lib)
	}
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	return c.Watch(ctx, *every, func(r *gpu.Report) error { return out.Encode(r) })
}
