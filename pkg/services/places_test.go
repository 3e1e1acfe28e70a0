package services

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/services/catalogue"
)

const promFolder = "/data/prometheus/prometheus-data"

// localPV returns a volume that paictl created for Prometheus.
func localPV(name, node string, phase corev1.PersistentVolumePhase, made int64) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Unix(made, 0)), Labels: map[string]string{labelPartOf: manager, labelService: "prometheus"}},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: promFolder}},
			ClaimRef:               &corev1.ObjectReference{Namespace: "pai-system", Name: "prometheus-data"},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
			}}}},
		},
		Status: corev1.PersistentVolumeStatus{Phase: phase},
	}
}

func boundClaim(volume string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "pai-system", Name: "prometheus-data"}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: volume}}
}

// madeFolder returns a finished Job. The Job shows that the folder exists.
func madeFolder(name, node string, made int64, args ...string) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "pai-system", Name: name, CreationTimestamp: metav1.NewTime(time.Unix(made, 0)),
		Labels: map[string]string{labelVolume: "x", labelService: "prometheus"}}}
	j.Spec.Template.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	j.Spec.Template.Spec.Containers = []corev1.Container{{Args: append(args, promFolder)}}
	j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	return j
}

// machines replaces the layout's machines with the given lines.
func (l *lab) machines(lines ...string) {
	l.Load = func(ctx context.Context) (*Desired, error) {
		d := desired(l.t, "", "")
		head, _, _ := strings.Cut(layoutText, "  - {")
		files := map[string][]byte{
			config.LayoutFile: []byte(head + strings.Join(lines, "")), config.RolesFile: []byte(rolesText),
			config.KubernetesFile: []byte(kubernetesText), config.ServicesFile: []byte(strings.Replace(servicesText, "%s", "", 1)),
		}
		c, err := config.Parse("conf", files)
		require.NoError(l.t, err)
		fs := testCharts()
		fs["charts/prometheus/values.yaml"].Data = append(fs["charts/prometheus/values.yaml"].Data, "persistence: {enabled: true, storageClass: pai-local, size: 1Gi}\n"...)
		all, _, err := catalogue.Load(ctx, c, catalogue.Options{Charts: fs})
		require.NoError(l.t, err)
		d.Config, d.Catalogue = c, all
		return d, nil
	}
}

const (
	w1  = "  - {hostname: w1, hostip: 10.0.0.11, machine-type: cpu, roles: [worker]}\n"
	w2  = "  - {hostname: w2, hostip: 10.0.0.12, machine-type: cpu, roles: [worker]}\n"
	w0  = "  - {hostname: w0, hostip: 10.0.0.2, machine-type: cpu, roles: [worker]}\n"
	bad = "  - {hostname: w2, hostip: 10.0.0.12, machine-type: cpu, roles: [master]}\n"
)

func promNode(t *testing.T, l *lab) any {
	t.Helper()
	d, err := l.LoadPlaced(t.Context())
	require.NoError(t, err)
	return d.Catalogue.Get("storage").Values["local"].(map[string]any)["serviceVolumes"].([]any)[0].(map[string]any)["node"]
}

func TestAVolumeStaysOnItsMachineWhateverTheLayoutsOrder(t *testing.T) {
	for name, c := range map[string]struct {
		objects  []runtime.Object
		machines []string
		want     string
	}{
		"a new volume lies on the lowest address":             {nil, []string{w2, w1}, "w1"},
		"a bound volume stays":                                {[]runtime.Object{localPV("a", "w2", corev1.VolumeBound, 1), boundClaim("a")}, []string{w1, w2}, "w2"},
		"a new machine listed above, with a lower address":    {[]runtime.Object{localPV("a", "w2", corev1.VolumeBound, 1), boundClaim("a")}, []string{w0, w1, w2}, "w2"},
		"a claim deleted by hand leaves the volume its data":  {[]runtime.Object{localPV("a", "w2", corev1.VolumeReleased, 2), localPV("b", "w1", corev1.VolumeAvailable, 1)}, []string{w1, w2}, "w2"},
		"of several the one that the claim has":               {[]runtime.Object{localPV("a", "w1", corev1.VolumeAvailable, 1), localPV("b", "w2", corev1.VolumeBound, 2), boundClaim("b")}, []string{w1, w2}, "w2"},
		"of several that nobody used the oldest":              {[]runtime.Object{localPV("a", "w1", corev1.VolumeAvailable, 2), localPV("b", "w2", corev1.VolumeAvailable, 1)}, []string{w1, w2}, "w2"},
		"a volume removed by hand is made over its folder":    {[]runtime.Object{madeFolder("j", "w2", 1, "prepare")}, []string{w1, w2}, "w2"},
		"the folder that was made last":                       {[]runtime.Object{madeFolder("j", "w1", 1, "prepare"), madeFolder("i", "w2", 2, "prepare")}, []string{w1, w2}, "w2"},
		"a folder that was removed is no reason":              {[]runtime.Object{madeFolder("j", "w2", 1, "remove")}, []string{w1, w2}, "w1"},
		"a folder on a machine that has left is no reason":    {[]runtime.Object{madeFolder("j", "w9", 1, "prepare")}, []string{w1, w2}, "w1"},
		"a volume of others is no reason, unless it is bound": {[]runtime.Object{func() runtime.Object { pv := localPV("a", "w2", corev1.VolumeAvailable, 1); pv.Labels = nil; return pv }()}, []string{w1, w2}, "w1"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, c.objects...)
			l.machines(c.machines...)
			assert.Equal(t, c.want, promNode(t, l))
		})
	}
}

func TestANewOrderOfTheLayoutChangesNothing(t *testing.T) {
	l := newLab(t)
	l.machines(w1, w2)
	require.NoError(t, l.start("prometheus"))
	api := l.client.CoreV1().PersistentVolumes()
	_, err := api.Create(t.Context(), localPV("a", promNode(t, l).(string), corev1.VolumeBound, 1), metav1.CreateOptions{})
	require.NoError(t, err)
	l.releases.forget()
	for name, machines := range map[string][]string{"reordered": {w2, w1}, "a machine with a lower address, listed above": {w0, w1, w2}} {
		l.machines(machines...)
		o := l.options()
		o.DryRun = true
		require.NoError(t, l.Start(t.Context(), o), name)
		for _, e := range l.story.of(EventPlanned) {
			if e.Service == "storage" || e.Service == "prometheus" {
				assert.Empty(t, e.Plan.Changes, "%s: %s", name, e.Service)
			}
		}
		require.NoError(t, l.start("prometheus"), name)
		assert.Empty(t, l.releases.changes(), name)
	}
}

func TestDataOnAMachineThatPodsCannotReachIsNotLeftBehindSilently(t *testing.T) {
	for name, c := range map[string]struct {
		machines         []string
		message, remedy  string
		chosen, harmless string
	}{
		"the machine left the layout":       {[]string{w1}, "prometheus has its data in " + promFolder + " on w2, which is no longer in the layout", "put w2 back (paictl node add)", "grafana", "alerts"},
		"the placement allows no pod there": {[]string{w1, bad}, "on w2, where its placement allows no pods", "give w2 a role of its placement again", "prometheus", "storage"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, localPV("a", "w2", corev1.VolumeBound, 1), boundClaim("a"))
			l.machines(c.machines...)
			for _, dry := range []bool{true, false} {
				o := l.options(c.chosen)
				o.DryRun = dry
				err := l.Start(t.Context(), o)
				require.ErrorContains(t, err, c.message)
				assert.Contains(t, hint.Of(err), c.remedy)
				assert.Contains(t, hint.Of(err), "paictl service delete -n prometheus")
				assert.Empty(t, l.releases.changes())
			}
			require.NoError(t, l.start(c.harmless), "what has nothing there is started")
			assert.Equal(t, "w2", promNode(t, l))
		})
	}
}
