package service

import (
	"bytes"
	"context"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/services"
	"github.com/openpai/paictl/pkg/services/ready"
	"github.com/openpai/paictl/pkg/services/release"
	"github.com/openpai/paictl/pkg/services/state"
	"github.com/openpai/paictl/pkg/ui/iostreams"
	"github.com/openpai/paictl/pkg/ui/progress"
	"github.com/openpai/paictl/pkg/version"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := "testdata/" + name
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run the test with -update")
	assert.Equal(t, string(want), got)
}

func statuses(now time.Time) []services.Status {
	return []services.Status{
		{Name: "alert-manager", Namespace: "pai-system", State: services.StateReady, Pods: 1, ReadyPods: 1, Revision: 3, Chart: "alert-manager 0.1.0", Updated: now.Add(-90 * time.Minute), Configuration: services.ConfigurationCurrent},
		{Name: "grafana", Namespace: "pai-system", State: services.StateDisabled},
		{Name: "prometheus", Namespace: "pai-system", State: services.StateFailed, Pods: 2, ReadyPods: 1, Revision: 12, Chart: "prometheus 0.1.0", Updated: now.Add(-40 * time.Second), Configuration: services.ConfigurationChanged,
			Problems: []ready.Problem{{Object: "pod/prometheus-0", Reason: "ImagePullBackOff", Message: "image can't be pulled: no such\nimage \x1b[31mv9", Hint: "check image.tag"}}},
		{Name: "scheduler", Namespace: "pai-system", State: services.StateStopped, Hint: state.StartCommand("scheduler")},
		{Name: "storage", Namespace: "pai-system", State: services.StateNotInstalled, Hint: state.StartCommand("storage")},
		{Name: "watchdog", Namespace: "pai-system", State: services.StateNotInstalled, Hint: state.StartCommand("watchdog")},
	}
}

func TestStatusIsATableWithALinePerProblem(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, format := range []string{"table", "name", "yaml"} {
		cmd := NewCmdStatus(cmdutil.New("v0"))
		require.NoError(t, cmd.Flags().Set("output", format))
		var out cmdutil.Output
		cmdutil.AddOutputFlag(NewCmdService(cmdutil.New("v0")), &out)
		require.NoError(t, out.Set(format))
		var b bytes.Buffer
		require.NoError(t, writeStatus(&b, &out, statuses(now), now))
		golden(t, "status."+format+".golden", b.String())
	}
}

func TestServicesThatAnotherPaictlInstalledAreNamed(t *testing.T) {
	all := statuses(time.Now())
	for i, by := range []string{version.OfTag(version.Tag()), "", "v0.0.2", "v0.0.1+abc", "", ""} {
		all[i].Paictl = by
	}
	all = append(all, services.Status{Name: "old", State: services.StateOrphan, Paictl: "v0.0.1"})
	var b bytes.Buffer
	require.NoError(t, writeOlder(&b, all))
	assert.Equal(t, "\nprometheus, scheduler: installed by paictl v0.0.1+abc and v0.0.2, this is "+version.Version+"\n  -> paictl service upgrade\n", b.String())
	b.Reset()
	require.NoError(t, writeOlder(&b, all[:2]))
	assert.Empty(t, b.String())
	all[1].Paictl = "v99.0.0"
	require.NoError(t, writeOlder(&b, all[:2]))
	assert.Contains(t, b.String(), "installed by paictl v99.0.0, this is "+version.Version+"\n  -> use a paictl that is as new\n")
}

func TestAnUpgradeShowsItsPlanAndAsks(t *testing.T) {
	planned := []services.Event{
		{Kind: services.EventPlanned, Service: "prometheus", Action: release.Upgraded, Plan: &release.Plan{Action: release.Upgraded,
			Changes: []release.Change{{Action: release.Update, Object: "ConfigMap pai-system/prometheus", Diff: "-a\n+b\n"}}, Kept: []string{"CustomResourceDefinition gears.example.org"}, Loses: []string{"CustomResourceDefinition wheels.example.org: version v2"}}},
		{Kind: services.EventPlanned, Service: "grafana", Action: release.Upgraded, Plan: &release.Plan{Action: release.Upgraded}},
		{Kind: services.EventPlanned, Service: "storage", Action: release.Unchanged, Plan: &release.Plan{Action: release.Unchanged}},
	}
	for _, tc := range []struct {
		name, typed   string
		terminal, yes bool
		err           string
	}{
		{name: "yes", typed: "yes\n", terminal: true},
		{name: "no", typed: "no\n", terminal: true, err: "service upgrade was not confirmed"},
		{name: "no one there", err: "add --yes"},
		{name: "no one there, and --yes", yes: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := cmdutil.New("v0")
			io, in, _, errOut := iostreams.Test()
			io.SetTerminal(tc.terminal)
			f.IO = io
			in.WriteString(tc.typed)
			err := (&UpgradeOptions{Factory: f, Yes: tc.yes}).confirm(planned, "admin@k8s")
			if tc.err != "" {
				require.ErrorContains(t, err, tc.err)
			} else {
				require.NoError(t, err)
			}
			if tc.terminal {
				assert.Equal(t, `prometheus
  ~ update ConfigMap pai-system/prometheus
      -a
      +b
  = keep CustomResourceDefinition gears.example.org, which the chart no longer has
  ! objects lose their data in CustomResourceDefinition wheels.example.org: version v2

grafana
  a new revision, in which no object changes

1 change, 2 services
Upgrade 2 services of the cluster admin@k8s to the charts of paictl `+version.Version+`? [yes/no] `, errOut.String())
			}
		})
	}
}

func TestExitCodeIsAboutServicesThatShouldRun(t *testing.T) {
	all := statuses(time.Now())
	assert.False(t, allReady(all))
	assert.True(t, allReady(all[:2]), "what is disabled need not run")
	all[0].State = services.StateNotInstalled
	assert.False(t, allReady(all[:2]))
}

func deletion(id string) services.Deletion {
	return services.Deletion{ClusterID: id, Services: []string{"grafana", "prometheus"}, Volumes: []services.Volume{
		{Service: "prometheus", Namespace: "pai-system", Claim: "prometheus-data", Size: "10Gi", PersistentVolume: "pv", Folder: "/datastorage/prometheus", Node: "gpu-1", Owned: true},
	}}
}

func TestADeletionIsConfirmedByTheClusterID(t *testing.T) {
	for _, tc := range []struct {
		name, id, typed string
		terminal, yes   bool
		err             string
	}{
		{name: "the right id", id: "lab", typed: "lab\n", terminal: true},
		{name: "another id", id: "lab", typed: "prod\n", terminal: true, err: `"prod" is not "lab": not confirmed`},
		{name: "no configuration asks for the context", typed: "admin@k8s\n", terminal: true},
		{name: "no one there", id: "lab", err: "add --yes"},
		{name: "no one there, and --yes", id: "lab", yes: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := cmdutil.New("v0")
			io, in, out, errOut := iostreams.Test()
			io.SetTerminal(tc.terminal)
			f.IO = io
			in.WriteString(tc.typed)
			err := (&DeleteOptions{Factory: f, Yes: tc.yes}).confirm(deletion(tc.id), "admin@k8s")
			assert.Empty(t, out.String())
			if tc.err != "" {
				require.ErrorContains(t, err, tc.err)
				return
			}
			require.NoError(t, err)
			if !tc.yes {
				assert.Contains(t, errOut.String(), "  prometheus: claim pai-system/prometheus-data, 10Gi, with the folder /datastorage/prometheus on gpu-1\n")
			}
		})
	}
}

type recorder struct {
	events []services.Event
	closed bool
}

func (r *recorder) Emit(e services.Event) { r.events = append(r.events, e) }
func (r *recorder) Close() error          { r.closed = true; return nil }

func TestTheScreenIsTakenWithTheFirstEvent(t *testing.T) {
	r, opened := &recorder{}, false
	s := &sink{open: func() progress.ServiceRenderer { opened = true; return r }}
	require.NoError(t, s.close())
	assert.False(t, opened, "a person may be asked before")
	s.Emit(services.Event{Kind: services.EventRunStarted})
	s.Emit(services.Event{Kind: services.EventPlanned, Service: "a"})
	require.NoError(t, s.close())
	assert.True(t, r.closed)
	assert.Len(t, r.events, 2)
	assert.Len(t, s.planned, 1)
}

func TestTheRetryLeavesOutTheNames(t *testing.T) {
	var got StartOptions
	cmd := NewCmdStart(cmdutil.New("v0"), func(_ context.Context, o *StartOptions) error { got = *o; return nil })
	cmd.SetArgs([]string{"-n", "a,b", "-x", "c", "--wait", "1m", "--kubeconfig", "my file"})
	require.NoError(t, cmd.ExecuteContext(t.Context()))
	o := got.Flags.options(got.Wait)
	assert.Equal(t, "start -x c --kubeconfig 'my file' -n a,b --wait 1m0s", o.Command)
	assert.Equal(t, "start --kubeconfig 'my file' --wait 1m0s", o.Again)
	assert.Equal(t, []string{"a", "b"}, o.Names)
	assert.Equal(t, time.Minute, o.Wait)
}
