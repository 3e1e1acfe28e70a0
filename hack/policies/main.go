// policies runs the traces of docs/performance.md with each policy. It prints a table with the results of HiveD and of paictl.
//
//	go run ./hack/policies                          # the table of docs/performance.md
//	go run ./hack/policies -gpus 512 -seeds 2,3,5   # other jobs, without HiveD's figures
//
// All times are virtual, so the table doesn't depend on the machine. The results of HiveD (hived.csv) were measured with the same jobs and the same
// rules, with microsoft/hivedscheduler 66f26ac.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/scheduler/sim"
	"github.com/openpai/paictl/pkg/scheduler/sim/trace"
)

// variant specifies how much time a killed job loses.
type variant struct {
	name                string
	checkpoint, restart int // seconds
}

var variants = []variant{{"kept", 0, 0}, {"lost", 1800, 60}}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "policies:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("policies", flag.ContinueOnError)
	gpus := flags.String("gpus", "64,512,2048,8192", "sizes of the cluster")
	seeds := flags.String("seeds", "0,1,7,42", "seeds of the jobs")
	policies := flags.String("policies", strings.Join(cell.PolicyNames(), ","), "policies to run")
	if err := flags.Parse(args); err != nil {
		return err
	}
	sizes, err := numbers(*gpus)
	if err != nil {
		return err
	}
	from, err := numbers(*seeds)
	if err != nil {
		return err
	}
	hived, err := readHiveD()
	if err != nil {
		return err
	}
	fmt.Print(header)
	for _, n := range sizes {
		for _, v := range variants {
			rows, err := compare(ctx, n, v, from, strings.Split(*policies, ","))
			if err != nil {
				return err
			}
			fmt.Print(table(n, v, hived.mean(n, v.name, from), rows))
		}
	}
	return nil
}

func numbers(list string) ([]int, error) {
	var out []int
	for _, text := range strings.Split(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%q is not 0 or a positive number", text)
		}
		out = append(out, n)
	}
	return out, nil
}

// compare runs the jobs of all seeds with each policy. It runs as many simulations at the same time as there are processors.
func compare(ctx context.Context, gpus int, v variant, seeds []int, policies []string) ([]row, error) {
	all := make([][]figures, len(policies))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	var done atomic.Int64
	for i, policy := range policies {
		all[i] = make([]figures, len(seeds))
		for k, seed := range seeds {
			g.Go(func() error {
				r, err := simulate(ctx, gpus, seed, policy, v)
				if err != nil {
					return fmt.Errorf("%d GPUs, seed %d, %s: %w", gpus, seed, policy, err)
				}
				all[i][k] = figuresOf(r)
				fmt.Fprintf(os.Stderr, "%d GPUs, work %s: %d of %d runs\n", gpus, v.name, done.Add(1), len(policies)*len(seeds))
				return nil
			})
		}
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	rows := make([]row, len(policies))
	for i, policy := range policies {
		rows[i] = row{policy, mean(all[i])}
	}
	return rows, nil
}

func simulate(ctx context.Context, gpus, seed int, policy string, v variant) (*sim.Report, error) {
	tr, err := trace.Generate(gpus, uint64(seed))
	if err != nil {
		return nil, err
	}
	for i := range tr.Config.VirtualClusters {
		tr.Config.VirtualClusters[i].Policy = policy
	}
	r, err := sim.Run(ctx, tr.Config, tr.Jobs, sim.Options{Drain: true, Checkpoint: v.checkpoint, Restart: v.restart})
	if err != nil {
		return nil, err
	}
	if r.Completion == nil {
		return nil, errors.New("the run has no completion times")
	}
	return r, nil
}
