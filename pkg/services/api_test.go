package services

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/services/ready"
	"github.com/openpai/paictl/pkg/services/release"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Wrap(m).Run()) }

// apiLab is a platform with all of paictl's services on a real API server.
type apiLab struct {
	*Platform
	t       *testing.T
	cluster *kube.Cluster
	dir     string
	story   *story
}

func newAPILab(t *testing.T) *apiLab {
	t.Helper()
	c := kubetest.StartNodes(t)
	releases, err := release.NewHelm(c, nil)
	require.NoError(t, err)
	l := &apiLab{t: t, cluster: c, dir: t.TempDir()}
	l.Platform = &Platform{
		Client: c.Client, Releases: releases, Ready: ready.New(c.Client), Load: FromFolder(l.dir), Clock: time.Now, Process: ThisProcess(),
	}
	l.configure("")
	return l
}

// configure writes a configuration for the simulated nodes. The first node is the master. In this configuration, paictl did not install Kubernetes,
// so a start labels the nodes.
func (l *apiLab) configure(sections string) {
	l.t.Helper()
	list, err := l.cluster.Client.CoreV1().Nodes().List(l.t.Context(), metav1.ListOptions{})
	require.NoError(l.t, err)
	machines := ""
	for i, n := range list.Items {
		role := "worker"
		if i == 0 {
			role = "master"
		}
		machines += fmt.Sprintf("  - {hostname: %s, hostip: 10.99.0.%d, machine-type: cpu, roles: [%s]}\n", n.Name, i+1, role)
	}
	layout, _, _ := strings.Cut(layoutText, "  - {")
	for name, text := range map[string]string{
		config.LayoutFile: strings.Replace(layout, "machine-list:", "ssh: {username: root, password: pass-of-ssh}\nmachine-list:", 1) + machines,
		config.RolesFile:  rolesText, config.ServicesFile: fmt.Sprintf(servicesText, "") + sections,
		config.KubernetesFile: "apiVersion: paictl.openpai.org/v1\nkind: KubernetesConfiguration\nkubernetes: {managed: false, version: v1.36.3, cluster-name: lab, cluster-dns: [10.0.0.53], load-balance-ip: 10.99.0.1}\n",
	} {
		require.NoError(l.t, os.WriteFile(l.dir+"/"+name, []byte(text), 0o600))
	}
}

func (l *apiLab) options(only ...string) Options {
	l.story = &story{}
	return Options{Names: only, Wait: 5 * time.Minute, Sink: l.story, Command: "paictl service", WithDependents: true}
}

func (l *apiLab) start() *Summary {
	l.t.Helper()
	err := l.Start(l.t.Context(), l.options())
	for _, e := range l.story.of(EventProblem) {
		l.t.Logf("%s: %+v", e.Service, *e.Problem)
	}
	require.NoError(l.t, err)
	return l.story.summary()
}

func (l *apiLab) revisions() map[string]int {
	l.t.Helper()
	list, err := l.Releases.List(l.t.Context(), kube.SystemNamespace)
	require.NoError(l.t, err)
	out := map[string]int{}
	for _, r := range list {
		out[r.Name] = r.Revision
	}
	return out
}

func (l *apiLab) states() map[string]string {
	l.t.Helper()
	list, err := l.Status(l.t.Context())
	require.NoError(l.t, err)
	out := map[string]string{}
	for _, s := range list {
		out[s.Name] = s.State
	}
	return out
}

func TestTheLifeOfAllServicesOnARealAPI(t *testing.T) {
	l := newAPILab(t)
	const mail = "alert-manager: {receivers: {email: {smtpHost: mail.invalid, from: a@b.c, to: [d@e.f], authUsername: u, authPassword: word-of-mail}}}\n"
	l.configure(mail)

	first := l.start()
	assert.Len(t, first.Changed, first.Services)
	for name, state := range l.states() {
		assert.Contains(t, []string{StateReady, StateDisabled}, state, name)
	}
	node, err := l.Client.CoreV1().Nodes().Get(t.Context(), l.firstNode(), metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, "true", node.Labels["pai-master"])
	before := l.revisions()

	began := time.Now()
	again := l.start()
	t.Logf("a second start took %s", time.Since(began).Round(time.Millisecond))
	assert.Zero(t, again.Changes)
	assert.Equal(t, before, l.revisions())

	l.configure(mail + "prometheus: {retention: {time: 7d}}\n")
	began = time.Now()
	list, err := l.Status(t.Context())
	require.NoError(t, err)
	list = slices.DeleteFunc(list, func(s Status) bool { return s.Name != "prometheus" && s.Name != "storage" })
	t.Logf("status took %s", time.Since(began).Round(time.Millisecond))
	assert.Equal(t, ConfigurationChanged, list[0].Configuration)
	assert.Equal(t, ConfigurationCurrent, list[1].Configuration)
	require.NoError(t, l.Restart(t.Context(), l.options()))
	assert.Equal(t, []string{"prometheus"}, l.story.summary().Changed)

	raw, err := json.Marshal(l.story.events)
	require.NoError(t, err)
	assert.NotContains(t, string(raw), "word-of-mail")

	require.NoError(t, l.Stop(t.Context(), l.options()))
	assert.Empty(t, l.revisions())
	assert.Equal(t, StateStopped, l.states()["prometheus"])
	l.start()
	require.NoError(t, l.Delete(t.Context(), l.options()))
	// Kubernetes removes a claim shortly after the deletion.
	assert.Eventually(t, func() bool { return l.states()["prometheus"] == StateNotInstalled }, 30*time.Second, 200*time.Millisecond)
	claims, err := l.Client.CoreV1().PersistentVolumes().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	claims.Items = slices.DeleteFunc(claims.Items, func(pv corev1.PersistentVolume) bool { return pv.DeletionTimestamp != nil })
	assert.Empty(t, claims.Items)
}

func (l *apiLab) firstNode() string {
	list, err := l.Client.CoreV1().Nodes().List(l.t.Context(), metav1.ListOptions{})
	require.NoError(l.t, err)
	return list.Items[0].Name
}

func TestOneRunAtATimeOnARealAPI(t *testing.T) {
	l := newAPILab(t)
	require.NoError(t, l.newRun("start", Options{}).ensureNamespace(t.Context(), kube.SystemNamespace))
	codes := make(chan error, 8)
	hold := make(chan struct{})
	for i := range 8 {
		go func() {
			_, release, err := NewLock(l.Client, person("ann", fmt.Sprint("host", i)), "x", time.Now).Hold(t.Context())
			codes <- err
			if err == nil {
				<-hold
				release()
			}
		}()
	}
	won := 0
	for range 8 {
		if err := <-codes; err == nil {
			won++
		} else {
			assert.ErrorAs(t, err, new(*LockedError))
		}
	}
	close(hold)
	assert.Equal(t, 1, won)
}
