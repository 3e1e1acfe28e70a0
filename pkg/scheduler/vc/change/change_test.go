package change_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/hint"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	schedulerconfig "github.com/openpai/paictl/pkg/scheduler/config"
	"github.com/openpai/paictl/pkg/scheduler/vc"
	"github.com/openpai/paictl/pkg/scheduler/vc/change"
)

// stored returns a cluster with four machines with eight GPUs each. Its configuration is pushed and contains a password.
func stored(t *testing.T, objects ...runtime.Object) *fake.Clientset {
	t.Helper()
	files := map[string][]byte{
		config.LayoutFile: []byte("apiVersion: paictl.openpai.org/v1\nkind: Layout\nssh: {username: ubuntu, password: hunter2-of-ssh}\n" +
			"machine-sku:\n  m: {mem: 16Gi, cpu: {vcore: 8}, os: debian12}\n  g: {mem: 64Gi, cpu: {vcore: 16}, gpu: {type: a100, count: 8}, os: debian12}\n" +
			"machine-list:\n  - {hostname: m1, hostip: 10.0.0.1, machine-type: m, roles: [master]}\n"),
		config.RolesFile: []byte("apiVersion: paictl.openpai.org/v1\nkind: RoleDefinition\nk8s-role:\n" +
			"  master: {component-list: [etcd, apiserver, controller-manager, scheduler], labels: {pai-master: \"true\"}}\n  worker: {labels: {pai-worker: \"true\"}, workloads: true}\n"),
		config.ServicesFile: []byte("apiVersion: paictl.openpai.org/v1\nkind: ServicesConfiguration\ncluster:\n  common: {cluster-id: lab, data-path: /data}\n" +
			"  docker-registry: {domain: docker.io, namespace: openpai, docker-tag: v1.2.3, username: ann, password: hunter2-of-registry}\n"),
		config.KubernetesFile: []byte("apiVersion: paictl.openpai.org/v1\nkind: KubernetesConfiguration\nkubernetes: {managed: false, version: v1.36.3, cluster-name: lab, cluster-dns: [10.0.0.53], load-balance-ip: 10.0.0.1}\n"),
	}
	for i := 2; i <= 5; i++ {
		files[config.LayoutFile] = fmt.Appendf(files[config.LayoutFile], "  - {hostname: g%[1]d, hostip: 10.0.0.%[1]d, machine-type: g, roles: [worker]}\n", i)
	}
	client := fake.NewClientset(objects...)
	s := store.New(client)
	d, err := s.Draft(t.Context(), store.Candidate{Files: files})
	require.NoError(t, err)
	_, err = s.Push(t.Context(), d, store.Entry{By: "ada@desk"})
	require.NoError(t, err)
	client.PrependReactor("*", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("no secret may be read or written")
	})
	return client
}

// scheduler returns a Scheduler whose responses are the results of answer. If answer is nil, no scheduler is installed.
func scheduler(t *testing.T, answer func(path string) any) *vc.Scheduler {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if answer == nil {
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`))
			return
		}
		for _, path := range []string{api.PathValidate, api.PathVirtualClusters} {
			if strings.HasSuffix(r.URL.Path, path) {
				assert.NoError(t, json.NewEncoder(w).Encode(answer(path)))
				return
			}
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	return vc.NewScheduler(client)
}

func fine(path string) any {
	if path == api.PathValidate {
		return api.Validation{Valid: true}
	}
	return api.VirtualClusters{Problem: "an old one"}
}

func cells(name string, n int) vc.Request {
	return vc.Request{Name: name, Cells: []vc.Cells{{CellType: "g-NODE", CellNumber: n}}}
}

func TestAChangeIsPushedAndLoadedByTheScheduler(t *testing.T) {
	running := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: kube.SystemNamespace, Name: schedulerconfig.ConfigMap, Labels: map[string]string{"of": "helm"}}}
	client := stored(t, running)
	c := change.Changer{Client: client, Scheduler: scheduler(t, fine)}
	changes := vc.ChangeSet{Changes: []vc.Request{cells("vision", 1)}, DryRun: true}
	out, err := c.Do(t.Context(), &changes, "root")
	require.NoError(t, err)
	assert.True(t, out.Changed)
	assert.Equal(t, [...]any{"lab", 1, 0, "an old one", true}, [...]any{out.ClusterID, out.Base, out.Revision, out.Problem, out.Installed})
	assert.Contains(t, out.Diff, "+    vision:")
	assert.NotContains(t, out.Diff, "hunter2")
	s := store.New(client)
	r, err := s.Current(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 1, r.Number, "a dry run changes nothing")

	changes = vc.ChangeSet{Changes: []vc.Request{cells("vision", 1)}, Revision: 1, Message: "first"}
	out, err = c.Do(t.Context(), &changes, "root")
	require.NoError(t, err)
	assert.Equal(t, 2, out.Revision)
	r, err = s.Current(t.Context())
	require.NoError(t, err)
	assert.Equal(t, [...]any{2, "root", "first"}, [...]any{r.Number, r.By, r.Message})
	now, err := client.CoreV1().ConfigMaps(kube.SystemNamespace).Get(t.Context(), schedulerconfig.ConfigMap, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, running.Labels, now.Labels)
	loaded, found := schedulerconfig.Parse("", []byte(now.Data[schedulerconfig.ConfigMapKey]))
	require.NoError(t, found.Err())
	owned := map[string]int{}
	for _, v := range loaded.VirtualClusters {
		owned[v.Name] = v.Cells[0].Count
	}
	assert.Equal(t, map[string]int{"default": 3, "vision": 1}, owned)

	out, err = c.Do(t.Context(), &vc.ChangeSet{Changes: []vc.Request{cells("vision", 1)}}, "root")
	require.NoError(t, err)
	assert.False(t, out.Changed)
	assert.Zero(t, out.Revision)
	_, err = c.Do(t.Context(), &vc.ChangeSet{Changes: []vc.Request{cells("vision", 2)}, Revision: 1}, "root")
	require.ErrorContains(t, err, "was changed while this push ran, and nothing was written: revision 2 was pushed by root")
	var refused *change.RefusedError
	require.ErrorAs(t, err, &refused)
}

// loaded returns the number of machines of each virtual cluster in the scheduler's ConfigMap.
func loaded(t *testing.T, client kubernetes.Interface) map[string]int {
	t.Helper()
	now, err := client.CoreV1().ConfigMaps(kube.SystemNamespace).Get(t.Context(), schedulerconfig.ConfigMap, metav1.GetOptions{})
	require.NoError(t, err)
	c, found := schedulerconfig.Parse("", []byte(now.Data[schedulerconfig.ConfigMapKey]))
	require.NoError(t, found.Err())
	out := map[string]int{}
	for _, v := range c.VirtualClusters {
		out[v.Name] = v.Cells[0].Count
	}
	return out
}

// interrupted returns a client for the same objects. The first update of the scheduler's ConfigMap calls do and fails with its
// error.
func interrupted(client *fake.Clientset, do func() error) *fake.Clientset {
	out, done := fake.NewClientset(), false
	out.PrependReactor("*", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if update, ok := a.(clienttesting.UpdateAction); ok && !done && update.GetObject().(metav1.Object).GetName() == schedulerconfig.ConfigMap {
			done = true
			return true, nil, do()
		}
		o, err := client.Invokes(a, nil)
		return true, o, err
	})
	return out
}

func started() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: kube.SystemNamespace, Name: schedulerconfig.ConfigMap}}
}

func TestASlowChangeDoesNotUndoALaterOne(t *testing.T) {
	client := stored(t, started())
	c := change.Changer{Client: client, Scheduler: scheduler(t, fine)}
	slow := change.Changer{Scheduler: c.Scheduler, Client: interrupted(client, func() error {
		out, err := c.Do(t.Context(), &vc.ChangeSet{Changes: []vc.Request{{Name: "vision", Cells: cells("", 2).Cells, TakeFrom: "default"}}}, "bob")
		require.NoError(t, err)
		assert.Equal(t, 3, out.Revision)
		return apierrors.NewConflict(corev1.Resource("configmaps"), schedulerconfig.ConfigMap, errors.New("it was changed"))
	})}
	out, err := slow.Do(t.Context(), &vc.ChangeSet{Changes: []vc.Request{cells("vision", 1)}}, "root")
	require.NoError(t, err)
	assert.Equal(t, 2, out.Revision)
	assert.Equal(t, map[string]int{"default": 2, "vision": 2}, loaded(t, client), "as revision 3, which is stored")
}

func TestAnInterruptedChangeContinues(t *testing.T) {
	client := stored(t, started())
	c := change.Changer{Scheduler: scheduler(t, fine), Client: interrupted(client, func() error { return errors.New("the connection broke") })}
	changes := vc.ChangeSet{Changes: []vc.Request{cells("vision", 1)}}
	_, err := c.Do(t.Context(), &changes, "root")
	require.EqualError(t, err, "revision 2 of the configuration is stored, but the scheduler doesn't have it yet: the connection broke")
	assert.Contains(t, hint.Of(err), "run the command again")
	dry := vc.ChangeSet{Changes: []vc.Request{cells("vision", 1)}, DryRun: true}
	out, err := c.Do(t.Context(), &dry, "root")
	require.NoError(t, err)
	assert.Equal(t, [...]bool{false, true}, [...]bool{out.Changed, out.Pending})

	changes = vc.ChangeSet{Changes: []vc.Request{cells("vision", 1)}, Revision: out.Base}
	out, err = c.Do(t.Context(), &changes, "root")
	require.NoError(t, err)
	assert.Equal(t, [...]any{2, 2, false, true}, [...]any{out.Base, out.Revision, out.Changed, out.Pending})
	assert.Equal(t, map[string]int{"default": 3, "vision": 1}, loaded(t, client))
	changes = vc.ChangeSet{Changes: []vc.Request{cells("vision", 1)}}
	out, err = c.Do(t.Context(), &changes, "root")
	require.NoError(t, err)
	assert.False(t, out.Pending)
	assert.Zero(t, out.Revision)

	c.Client = interrupted(client, func() error { return errors.New("the connection broke") })
	remove := vc.ChangeSet{Changes: []vc.Request{{Name: "vision", Delete: true, TakeFrom: "default"}}}
	_, err = c.Do(t.Context(), &remove, "root")
	require.ErrorContains(t, err, "revision 3 of the configuration is stored")
	out, err = c.Do(t.Context(), &remove, "root")
	require.NoError(t, err)
	assert.True(t, out.Pending)
	assert.Equal(t, map[string]int{"default": 4}, loaded(t, client))
	_, err = c.Do(t.Context(), &remove, "root")
	require.ErrorContains(t, err, "there is no virtual cluster vision")
}

func TestAnOrderThatCanNotBeCarriedOutChangesNothing(t *testing.T) {
	client := stored(t)
	c := change.Changer{Client: client, Scheduler: scheduler(t, nil)}
	for says, o := range map[string]vc.ChangeSet{
		"name a virtual cluster":                      {},
		"change 1 has no name":                        {Changes: []vc.Request{{}}},
		"the message is longer than":                  {Changes: []vc.Request{cells("vision", 1)}, Message: strings.Repeat("x", store.MaxMessage+1)},
		"g-NODE of the virtual cluster default is -1": {Changes: []vc.Request{cells("default", -1)}},
		"there is no virtual cluster nlp":             {Changes: []vc.Request{{Name: "nlp", Delete: true}}},
		"services-configuration.yaml":                 {Changes: []vc.Request{{Name: "default", Cells: []vc.Cells{{CellType: "g-NODE", CellNumber: 9}}}}},
		"default has fewer than the reques":           {Changes: []vc.Request{cells("vision", 9)}},
		"policy":                                      {Changes: []vc.Request{{Name: "default", Policy: "fast"}}},
		"quota":                                       {Changes: []vc.Request{{Name: "default", Users: map[string]*int{"ann": new(int)}, PerUser: func() *int { n := -1; return &n }()}}},
	} {
		_, err := c.Do(t.Context(), &o, "root")
		require.ErrorContains(t, err, says)
		var invalid *change.InvalidError
		require.ErrorAs(t, err, &invalid, says)
	}
	r, err := store.New(client).Current(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 1, r.Number)
}

func owner(name string, gpus, nodes int) *api.VirtualCluster {
	v := &api.VirtualCluster{Name: name, Guaranteed: gpus}
	if nodes > 0 {
		v.Cells = []api.Cells{{CellType: "node", CellNumber: nodes}}
	}
	return v
}

// effect returns the validation of a change that removes or shrinks some virtual clusters.
func effect() *api.Validation {
	cpus := owner("prep", 0, 0)
	cpus.CPU = &cell.CPUStats{Guaranteed: 15}
	return &api.Validation{Valid: true, VirtualClusters: []api.ChangedVirtualCluster{
		{Name: "vision", Before: owner("vision", 16, 2)}, {Name: "nlp", Before: owner("nlp", 8, 1), After: owner("nlp", 0, 0)},
		{Name: "audio", Before: owner("audio", 16, 2), After: owner("audio", 8, 1)}, {Name: "prep", Before: owner("prep", 8, 1), After: cpus},
	}, Changes: []api.Change{
		{VC: "vision", Group: "ann~train/default", Effect: api.Downgraded, GPUs: 8}, {VC: "vision", Group: "bob~eval/default", Effect: api.Refused, GPUs: 4},
		{VC: "vision", Group: "bob~eval/default-CPU", Effect: api.Orphaned, CPUCells: 2}, {VC: "nlp", Group: "eve~big/default", Effect: api.Refused, GPUs: 1},
		{VC: "nlp", Group: "eve~back/default", Effect: api.Restored, GPUs: 1}, {VC: "audio", Group: "ann~loses/default", Effect: api.Downgraded, GPUs: 8},
		{VC: "prep", Group: "ann~moves/default", Effect: api.Downgraded, GPUs: 8},
	}}
}

func TestAVirtualClusterWithJobsInsideIsNotRemoved(t *testing.T) {
	client := stored(t)
	validation := effect()
	c := change.Changer{Client: client, Scheduler: scheduler(t, func(path string) any {
		if path == api.PathValidate {
			return validation
		}
		return fine(path)
	})}
	changes := vc.ChangeSet{Changes: []vc.Request{cells("vision", 1)}, DryRun: true}
	out, err := c.Do(t.Context(), &changes, "root")
	require.NoError(t, err)
	assert.Equal(t, "nlp has 1 job inside: eve/big waits for 1 GPU; vision has 2 jobs inside: bob/eval runs on 2 CPU cells, ann/train runs on 8 GPUs", out.Refused)
	assert.Contains(t, out.Remedy, "with --force running jobs continue without a guarantee")
	changes = vc.ChangeSet{Changes: []vc.Request{cells("vision", 1)}}
	_, err = c.Do(t.Context(), &changes, "root")
	require.EqualError(t, err, out.Refused)
	var refused *change.RefusedError
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, out.Remedy, hint.Of(err))

	validation.Valid, validation.Problems = false, []api.Problem{{Severity: "error", Path: "virtualClusters.a", Message: "no place", Remedy: "make some"}}
	changes = vc.ChangeSet{Changes: []vc.Request{cells("vision", 1)}, Force: true}
	_, err = c.Do(t.Context(), &changes, "root")
	require.EqualError(t, err, "the scheduler would refuse it: virtualClusters.a: no place")

	validation = effect()
	validation.VirtualClusters = validation.VirtualClusters[2:]
	changes = vc.ChangeSet{Changes: []vc.Request{cells("vision", 1)}}
	out, err = c.Do(t.Context(), &changes, "root")
	require.NoError(t, err, "a virtual cluster that keeps cells may lose some")
	assert.Equal(t, 2, out.Revision)
	validation = effect()
	more := cells("vision", 2)
	more.TakeFrom = "default"
	changes = vc.ChangeSet{Changes: []vc.Request{more}, Force: true}
	out, err = c.Do(t.Context(), &changes, "root")
	require.NoError(t, err)
	assert.Equal(t, 3, out.Revision)
}

func TestARefusalNamesAFewOfManyJobs(t *testing.T) {
	validation := &api.Validation{Valid: true, VirtualClusters: []api.ChangedVirtualCluster{{Name: "v", Before: owner("v", 16, 2)}}}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
		validation.Changes = append(validation.Changes, api.Change{VC: "v", Group: "ann~" + name + "/default", Effect: api.Downgraded, GPUs: 1})
	}
	c := change.Changer{Client: stored(t), Scheduler: scheduler(t, func(path string) any {
		if path == api.PathValidate {
			return validation
		}
		return fine(path)
	})}
	_, err := c.Do(t.Context(), &vc.ChangeSet{Changes: []vc.Request{cells("vision", 1)}}, "root")
	assert.ErrorContains(t, err, "v has 10 jobs inside: ann/a runs on 1 GPU, ")
	assert.ErrorContains(t, err, "ann/h runs on 1 GPU, and 2 more")
}

func TestJobsInsideAreFoundWithoutAScheduler(t *testing.T) {
	pod := func(name, vc, node string, phase corev1.PodPhase, request string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "pai-jobs", Name: name, Labels: map[string]string{v1.LabelVC: vc}, Annotations: map[string]string{annotation.SpecKey: request}},
			Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase}}
	}
	request := func(gang string) string {
		return "virtualCluster: vision\npriority: 0\nleafCellNumber: 1\naffinityGroup: {name: " + gang + ", members: [{podNumber: 1, leafCellNumber: 1}]}\n"
	}
	client := stored(t, pod("a", "vision", "gpu-1", corev1.PodRunning, request("ann~train/default")), pod("b", "vision", "", corev1.PodPending, request("bob~eval/default")),
		pod("c", "vision", "gpu-1", corev1.PodSucceeded, request("bob~done/default")), pod("d", "nlp", "gpu-1", corev1.PodRunning, request("eve~other/default")),
		pod("e", "vision", "", corev1.PodPending, ""))
	c := change.Changer{Client: client, Scheduler: scheduler(t, nil)}
	changes := vc.ChangeSet{Changes: []vc.Request{cells("vision", 1)}}
	out, err := c.Do(t.Context(), &changes, "root")
	require.NoError(t, err)
	assert.Contains(t, out.Note, "it isn't installed: the effect on gangs is not known")
	assert.False(t, out.Installed)
	remove := func(force bool) error {
		_, err := c.Do(t.Context(), &vc.ChangeSet{Changes: []vc.Request{{Name: "vision", Delete: true, TakeFrom: "default"}}, Force: force}, "root")
		return err
	}
	require.EqualError(t, remove(false), "vision has 3 jobs inside: ann/train runs, bob/eval waits, pai-jobs/e waits")
	client.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("the server is currently unable to handle the request")
	})
	err = remove(false)
	require.EqualError(t, err, "look for jobs in the virtual cluster vision: the server is currently unable to handle the request", "unknown jobs count as jobs")
	assert.Contains(t, hint.Of(err), "--force")
	assert.NoError(t, remove(true))
}
