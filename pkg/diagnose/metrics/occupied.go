package metrics

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/openpai/paictl/pkg/diagnose/web"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/kube"
)

// OccupiedUse is the use of GPUs that one person's tasks occupied in one virtual cluster, in GPU seconds. Times without a measurement don't count.
type OccupiedUse struct {
	User, VirtualCluster string
	// Measured is the measured time. Used is the time multiplied by the use, so that an hour at 50 % is half an hour. Idle is the time with a use
	// below 5 %.
	Measured, Used, Idle float64
}

const (
	// heldStep is the interval between two values. heldWindow is the time range of one query, which limits the memory that Prometheus needs.
	heldStep   = 5 * time.Minute
	heldWindow = 24 * time.Hour
	// maxHeld is the maximum number of results of a query. A query has three results for each person and virtual cluster.
	maxHeld = 30_000
)

// Occupied returns the use of GPUs that tasks occupied, by person and virtual cluster. An empty user or vc selects all. The error is a RangeError,
// ErrNone or ErrAway.
func (r *Reader) Occupied(ctx context.Context, user, vc string, since, until time.Time) ([]OccupiedUse, error) {
	switch {
	case r == nil || r.Ask == nil:
		return nil, hint.Wrap(ErrNone, RemedyNone)
	case !since.Before(until):
		return nil, &RangeError{`"since" isn't before "until"`}
	}
	var ends []time.Time
	for end := until; end.After(since); end = end.Add(-heldWindow) {
		ends = append(ends, end)
	}
	parts := make([][]OccupiedUse, len(ends))
	all, each := errgroup.WithContext(ctx)
	all.SetLimit(atOnce)
	for i, end := range ends {
		all.Go(func() (err error) {
			parts[i], err = r.held(each, user, vc, end, min(heldWindow, end.Sub(since)))
			return err
		})
	}
	if err := all.Wait(); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if _, none := errors.AsType[*web.NoneError](err); none {
			return nil, hint.Wrap(ErrNone, RemedyNone)
		}
		if r.Failed != nil {
			r.Failed(err)
		}
		return nil, hint.Wrap(fmt.Errorf("%w: %w", ErrAway, err), RemedyAway)
	}
	type key struct{ user, vc string }
	sums := map[key]OccupiedUse{}
	for _, part := range parts {
		for _, one := range part {
			k := key{one.User, one.VirtualCluster}
			s := sums[k]
			sums[k] = OccupiedUse{one.User, one.VirtualCluster, s.Measured + one.Measured, s.Used + one.Used, s.Idle + one.Idle}
		}
	}
	out := make([]OccupiedUse, 0, len(sums))
	for _, one := range sums {
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b OccupiedUse) int {
		return cmp.Or(cmp.Compare(a.VirtualCluster, b.VirtualCluster), cmp.Compare(a.User, b.User))
	})
	return out, nil
}

func heldQuery(user, vc string, window time.Duration) string {
	match := ""
	for _, m := range [][2]string{{"user", user}, {"vc", vc}} {
		if m[1] != "" {
			match += is(m[0], m[1]) + ", "
		}
	}
	// The result is the use of each GPU, with the person and the virtual cluster of its task. The metric of tasks is multiplied by 0, so that it only
	// adds these labels.
	use := "max by (pod, node, gpu) (DCGM_FI_DEV_GPU_UTIL{" + is("namespace", kube.JobNamespace) + "})" +
		` * on (pod) group_left (user, vc) (0 * max by (pod, user, vc) (label_join(pai_task_gpus{` + match + `task_pod!=""} > 0, "pod", "", "task_pod")) + 1)`
	sum := func(how, series string) string {
		return "sum by (user, vc) (" + how + "_over_time((" + series + ")[" + seconds(window) + ":" + seconds(heldStep) + "]))"
	}
	return part("measured", sum("count", use)) + " or " + part("used", sum("sum", use)+" / 100") + " or " + part("idle", sum("count", "("+use+") < "+strconv.Itoa(idleUse)))
}

func (r *Reader) held(ctx context.Context, user, vc string, end time.Time, window time.Duration) ([]OccupiedUse, error) {
	body, err := r.Ask(ctx, service, "/api/v1/query", url.Values{"query": {heldQuery(user, vc, window)}, "time": {strconv.FormatInt(end.Unix(), 10)}, "timeout": {"20s"}})
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	var out []OccupiedUse
	n := 0
	err = web.Results(io.LimitReader(body, maxBytes), func(d *json.Decoder) error {
		var one struct {
			Metric map[string]string `json:"metric"`
			Value  point             `json:"value"`
		}
		if err := d.Decode(&one); err != nil {
			return err
		}
		if n++; n > maxHeld {
			return errMany
		}
		h, value := OccupiedUse{User: one.Metric["user"], VirtualCluster: one.Metric["vc"]}, one.Value.value*heldStep.Seconds()
		switch one.Metric[labelPart] {
		case "measured":
			h.Measured = value
		case "used":
			h.Used = value
		case "idle":
			h.Idle = value
		}
		out = append(out, h)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the answer of Prometheus: %w", err)
	}
	return out, nil
}
