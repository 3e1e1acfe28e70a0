package status

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/openpai/paictl/pkg/diagnose/alerts"
	"github.com/openpai/paictl/pkg/diagnose/web"
)

// Names of services that are queried through their HTTP API.
const (
	servicePrometheus = "prometheus"
	serviceAlerts     = "alert-manager"
)

// Queries for Prometheus. The metrics have the names of NVIDIA's dcgm-exporter, which the agent uses for all GPUs. The
// queries drop unneeded labels. With these labels, a response about 8,000 GPUs would be three times as large.
const (
	metricUtilisation = "DCGM_FI_DEV_GPU_UTIL"
	metricMemory      = "DCGM_FI_DEV_FB_USED"
	metricTemperature = "DCGM_FI_DEV_GPU_TEMP"
	metricPower       = "DCGM_FI_DEV_POWER_USAGE"
	queryUse          = `max by (__name__, node, gpu) ({__name__=~"` + metricUtilisation + "|" + metricMemory + "|" + metricTemperature + "|" + metricPower + `", node!=""})`
	queryExpiry       = `min by (name) (pai_certificate_expiry_timestamp_seconds{kind=~"kubelet|apiserver"})`
)

// expiry is when the first certificate of a machine expires.
type expiry time.Time

// sample is one value in a response of Prometheus.
type sample struct {
	Metric struct {
		Metric string `json:"__name__"`
		Node   string `json:"node"`
		GPU    string `json:"gpu"`
		Name   string `json:"name"`
	} `json:"metric"`
	Value [2]json.RawMessage `json:"value"`
}

func (s *sample) read() (v float64, at time.Time, err error) {
	var text string
	var seconds float64
	if err = errors.Join(json.Unmarshal(s.Value[0], &seconds), json.Unmarshal(s.Value[1], &text)); err != nil {
		return 0, at, err
	}
	v, err = strconv.ParseFloat(text, 64)
	return v, time.UnixMilli(int64(seconds * 1000)).UTC(), err
}

func (f *Follower) askPrometheus(ctx context.Context) (func(), error) {
	use, expires := map[string]map[int32]*Use{}, map[string]expiry{}
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error { return f.query(ctx, queryUse, func(s *sample) { addUse(use, s) }) })
	both.Go(func() error { return f.query(ctx, queryExpiry, func(s *sample) { addExpiry(expires, s) }) })
	if err := both.Wait(); err != nil {
		var none *web.NoneError
		if errors.As(err, &none) {
			f.set(func() {
				if f.b.use != nil {
					f.b.setUse(nil, nil)
				}
			})
		}
		return nil, err
	}
	return func() { f.b.setUse(use, expires) }, nil
}

func addExpiry(expires map[string]expiry, s *sample) {
	v, _, err := s.read()
	if err != nil || s.Metric.Name == "" {
		return
	}
	name := s.Metric.Name // a kubelet's is its node, an API server's its address
	if host, _, err := net.SplitHostPort(name); err == nil {
		name = host
	}
	expires[name] = expiry(time.Unix(int64(v), 0).UTC())
}

func addUse(use map[string]map[int32]*Use, s *sample) {
	v, at, err := s.read()
	index, bad := strconv.ParseInt(s.Metric.GPU, 10, 32)
	if err != nil || bad != nil || s.Metric.Node == "" {
		return
	}
	if use[s.Metric.Node] == nil {
		use[s.Metric.Node] = map[int32]*Use{}
	}
	u := use[s.Metric.Node][int32(index)]
	if u == nil {
		u = &Use{At: at}
		use[s.Metric.Node][int32(index)] = u
	}
	switch s.Metric.Metric {
	case metricUtilisation:
		u.Utilisation = v
	case metricMemory:
		u.MemoryUsed = int64(v)
	case metricTemperature:
		u.Temperature = v
	case metricPower:
		u.Power = v
	}
}

// query sends a query to Prometheus. It calls each for every value while it reads the response, because a response may
// be several megabytes long.
func (f *Follower) query(ctx context.Context, text string, each func(*sample)) error {
	body, err := f.o.Web(ctx, servicePrometheus, "/api/v1/query", url.Values{"query": {text}})
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	err = web.Results(body, func(d *json.Decoder) error {
		var s sample
		if err := d.Decode(&s); err != nil {
			return err
		}
		each(&s)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the answer of Prometheus: %w", err)
	}
	return nil
}

func (f *Follower) askAlerts(ctx context.Context) (func(), error) {
	body, err := f.o.Web(ctx, serviceAlerts, "/api/v2/alerts", url.Values{"active": {"true"}, "silenced": {"true"}, "inhibited": {"false"}})
	if err != nil {
		var none *web.NoneError
		if errors.As(err, &none) {
			f.set(func() { f.b.alerts, f.b.dirtyOther = nil, f.b.alerts != nil || f.b.dirtyOther })
		}
		return nil, err
	}
	defer func() { _ = body.Close() }()
	var told []alerts.Alert
	if err := json.NewDecoder(body).Decode(&told); err != nil {
		return nil, fmt.Errorf("read the answer of Alertmanager: %w", err)
	}
	out := []Alert{}
	for i := range told {
		a := &told[i]
		if a.Labels["alertname"] == alerts.Heartbeat {
			continue
		}
		out = append(out, Alert{Name: a.Labels["alertname"], Severity: a.Labels["severity"], Since: a.StartsAt.UTC(),
			Summary: clip(cmp.Or(a.Annotations["summary"], a.Annotations["description"])), Labels: a.Labels, Silenced: len(a.Status.SilencedBy) > 0, Runbook: a.Annotations["runbook_url"]})
	}
	slices.SortStableFunc(out, CompareAlerts)
	return func() { f.b.alerts, f.b.dirtyOther = out, true }, nil
}
