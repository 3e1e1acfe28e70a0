package status

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openpai/paictl/pkg/diagnose/checks"
	"github.com/openpai/paictl/pkg/kube"
	schedulerapi "github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/services"
	"github.com/openpai/paictl/pkg/services/state"
)

func TestWhatMakesAClusterUnhealthy(t *testing.T) {
	now := time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
	machine := func(m Machine) Cluster {
		m.Name = "gpu-1"
		return Cluster{Machines: []Machine{m}}
	}
	source := func(s Source) Cluster { return Cluster{Sources: []Source{s}} }
	for name, c := range map[string]struct {
		cluster Cluster
		want    string // the level, and the worst problem
	}{
		"nothing":                                {Cluster{}, "ok"},
		"a machine that works":                   {machine(Machine{State: MachineReady, Certificates: now.AddDate(0, 0, checks.CertificateWarning)}), "ok"},
		"a machine that doesn't":                 {machine(Machine{State: MachineNotReady, Since: now}), "critical machine gpu-1: is NotReady"},
		"one of which no one ever heard":         {machine(Machine{State: MachineUnknown}), "unknown machine gpu-1: is Unknown"},
		"one that is no node":                    {machine(Machine{State: MachineOutside}), "warning machine gpu-1: is Outside"},
		"a full disk":                            {machine(Machine{State: MachineReady, Pressure: []string{"DiskPressure"}}), "warning machine gpu-1: has the condition: disk pressure"},
		"a certificate that expires":             {machine(Machine{State: MachineReady, Certificates: now.AddDate(0, 0, checks.CertificateWarning).Add(-time.Second)}), "warning machine gpu-1: a certificate expires in 29 days"},
		"a certificate that no one renewed":      {machine(Machine{State: MachineReady, Certificates: now.Add(time.Hour)}), "critical machine gpu-1: a certificate expires in 1 hour"},
		"a certificate that has just expired":    {machine(Machine{State: MachineReady, Certificates: now}), "critical machine gpu-1: a certificate has expired"},
		"a sick GPU":                             {machine(Machine{State: MachineReady, GPUs: []GPU{{Index: 5, Health: GPUSick, Reason: "XID 79"}}}), "warning gpu gpu-1/5: sick: XID 79"},
		"a GPU that is used by order":            {machine(Machine{State: MachineReady, GPUs: []GPU{{Health: GPUIgnored, Reason: "XID 79"}}}), "ok"},
		"a service that failed":                  {Cluster{Services: []Service{{services.Status{Name: "grafana", State: services.StateFailed}}}}, "critical service grafana: failed"},
		"a service that starts":                  {Cluster{Services: []Service{{services.Status{Name: "grafana", State: services.StateStarting}}}}, "warning service grafana: starting"},
		"a service of which nothing is known":    {Cluster{Services: []Service{{services.Status{Name: "grafana", State: state.StateUnknown}}}}, "unknown service grafana: unknown"},
		"a service that no one wants":            {Cluster{Services: []Service{{services.Status{Name: "grafana", State: services.StateStopped}}}}, "ok"},
		"an API server that is unavailable":      {source(Source{Name: SourceAPI, State: StateStale, Message: "no answer"}), "critical source api: no answer"},
		"an API server that refuses":             {source(Source{Name: SourceAPI, State: StateFailed, Refused: true, Message: "forbidden"}), "unknown source api: forbidden"},
		"another source that is away":            {source(Source{Name: SourceAlerts, State: StateFailed, Message: "no answer"}), "unknown source alerts: no answer"},
		"an alert":                               {Cluster{Alerts: []Alert{{Name: "Hot", Severity: "critical", Summary: "it burns"}}}, "critical alert Hot: it burns"},
		"an alert that someone has silenced":     {Cluster{Alerts: []Alert{{Name: "Hot", Severity: "critical", Silenced: true}}}, "ok"},
		"an alert that only tells something":     {Cluster{Alerts: []Alert{{Name: "Hot", Severity: "info"}}}, "ok"},
		"a virtual cluster without all its GPUs": {Cluster{VirtualClusters: []VirtualCluster{{VirtualCluster: schedulerapi.VirtualCluster{Name: "nlp", Guaranteed: 8, Bad: 2}}}}, "warning vc nlp: 2 of its 8 GPUs are not usable"},
	} {
		c.cluster.At = now
		v := judge(&c.cluster)
		got := v.Level
		if len(v.Problems) > 0 {
			assert.Equal(t, v.Level, v.Problems[0].Level, name)
			got += " " + v.Problems[0].Kind + " " + v.Problems[0].Name + ": " + v.Problems[0].Message
		}
		assert.Equal(t, c.want, got, name)
	}
}

func TestTheWorstProblemIsTheFirstAndDecides(t *testing.T) {
	v := judge(&Cluster{
		Machines:        []Machine{{Name: "a", State: MachineOutside}, {Name: "b", State: MachineOutside}, {Name: "c", State: MachineUnknown}},
		Services:        []Service{{services.Status{Name: "grafana", State: services.StateFailed}}},
		VirtualClusters: []VirtualCluster{{VirtualCluster: schedulerapi.VirtualCluster{Name: "nlp", Bad: 1}}},
	})
	var got []string
	for _, p := range v.Problems {
		got = append(got, p.Level+" "+p.Name)
	}
	assert.Equal(t, []string{"critical grafana", "warning a", "warning nlp", "unknown c"}, got)
	assert.Equal(t, 1, v.Problems[1].Others, "b has the same trouble")
	full := judge(&Cluster{Machines: []Machine{{Name: "a", State: MachineReady, Pressure: []string{"DiskPressure"}}}})
	assert.Contains(t, full.Problems[0].Hint, "paictl doctor --only disk-space")
	assert.Equal(t, LevelCritical, v.Level)
}

func TestASourceThatLoadsIsNoProblemUntilItIsLate(t *testing.T) {
	c := &Cluster{Sources: []Source{{Name: SourceAPI, State: StateCurrent}, {Name: SourceServices, State: StateLoading}}}
	Complete(c)
	assert.Equal(t, LevelUnknown, c.Verdict.Level)
	assert.Empty(t, c.Verdict.Problems)
	late := unanswered(c, 10*time.Second)
	assert.Equal(t, []Problem{{Level: LevelUnknown, Kind: "source", Name: SourceServices, Message: "it has not answered in 10s"}}, late.Verdict.Problems)
	assert.Equal(t, StateLoading, c.Sources[1].State, "the model itself stays")
}

// If one list is missing, the message names the list. It also contains the API server's responses about the other lists.
func TestALateSourceNamesTheListThatIsMissing(t *testing.T) {
	c := through(t, "127.0.0.1:1", "")
	f, err := New(c, options(t, c))
	require.NoError(t, err)
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", nil)
	const missing = "events of " + kube.JobNamespace
	for _, k := range f.kinds {
		switch {
		case k.name == kindNodes || k.optional:
			f.down(k, forbidden)
		case k.source == SourceAPI && k.name != missing:
			k.loaded = true
			f.up(k)
		}
	}
	f.publish()
	assert.True(t, f.Current().Loading(), "one list may still come")
	late := unanswered(f.Current(), time.Second)
	api := late.sourceNamed(SourceAPI)
	assert.Equal(t, StateFailed, api.State)
	assert.Equal(t, "you may not read nodes; the "+missing+" have not been listed", api.Message)
	assert.NotEmpty(t, api.Hint)
	assert.Equal(t, LevelUnknown, late.Verdict.Level, "the API server answers")
	assert.Equal(t, "it has not answered in 1s", late.sourceNamed(SourceJobs).Message)

	for _, k := range f.kinds {
		if k.name == missing {
			f.down(k, errors.New("no leader"))
		}
		if k.name == kindPods {
			k.loaded, k.live, k.heard = false, false, time.Time{}
		}
	}
	f.publish()
	assert.Equal(t, StateLoading, f.Current().sourceNamed(SourceAPI).State, "another list may still come")
}
