package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	utilversion "k8s.io/apimachinery/pkg/util/version"

	"github.com/openpai/paictl/pkg/cluster/bundle/build"
	"github.com/openpai/paictl/pkg/version"
)

// TestKubernetesIsUpgraded upgrades three masters and a worker to the next patch release, which is the current release under another name. During
// the upgrade, a client writes to the API and a task runs. The upgrade is killed five times.
func TestKubernetesIsUpgraded(t *testing.T) {
	next := stamped(t)
	l := threeMasters(t, "e2eu")
	release := nextPatch(t)
	upgrade := []string{"cluster", "upgrade", "-p", l.cluster, "--bundle", next, "--to", release, "--yes"}

	r := run(t, upgrade...)
	assert.Equal(t, 4, r.code, "%s", r)
	assert.Contains(t, r.stderr, "no backup of the cluster was ever made")
	assert.Contains(t, read(t, l.conf()), version.Kubernetes, "nothing was changed")
	phrase := filepath.Join(filepath.Dir(l.cluster), "phrase")
	require.NoError(t, os.WriteFile(phrase, []byte("a passphrase of some length\n"), 0o600))
	ok(t, "cluster", "backup", "-p", l.cluster, "--to", filepath.Dir(l.cluster), "--passphrase-file", phrase)
	plan := ok(t, append(upgrade[:len(upgrade)-1:len(upgrade)-1], "--dry-run")...).stdout
	assert.Contains(t, plan, "drain node "+l.names[3])

	// The upgrade treats this pod as a task of the job "train". The pod ends by itself.
	worker := l.names[3]
	pod := fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"task","namespace":"pai-jobs","labels":{"FC_FRAMEWORK_NAME":"train"}},"spec":{"nodeName":%q,"restartPolicy":"Never",`+
		`"containers":[{"name":"app","image":%q}]}}`, worker, strings.TrimSpace(l.on(worker, "ctr -n k8s.io images ls -q 2>/dev/null | grep /pause: | head -n 1")))
	l.kubectl("create namespace pai-jobs")
	l.kubectl("create -f - <<'EOF'\n" + pod + "\nEOF\n")
	eventually(t, time.Minute, "the task runs", func() bool {
		return strings.TrimSpace(l.kubectl("-n pai-jobs get pod task -o jsonpath={.status.phase}")) == "Running"
	})
	containers := l.on(worker, "crictl ps 2>&1")
	assert.Contains(t, containers, "task")
	assert.NotContains(t, containers, "level=warning", "crictl knows containerd's socket")
	c := l.client(3)
	c.begins()

	for range 5 {
		cmd, _, out := command(t.Context(), t, upgrade...)
		require.NoError(t, cmd.Start())
		after := time.Duration(5+rand.IntN(60)) * time.Second
		time.Sleep(after)
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait() // it was killed
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		t.Logf("killed after %s: %s", after, lines[len(lines)-1])
	}
	r = run(t, "cluster", "up", "-p", l.cluster, "--bundle", next)
	assert.Equal(t, 4, r.code, "%s", r)
	assert.Contains(t, r.stderr, "paictl cluster upgrade")

	begun := time.Now()
	cmd, _, out := command(t.Context(), t, upgrade...)
	require.NoError(t, cmd.Start())
	of := func(field string) string {
		return strings.TrimSpace(l.kubectl("-n pai-jobs get pod task -o jsonpath={" + field + "}"))
	}
	eventually(t, 10*time.Minute, "the worker is taken out of service", func() bool {
		text, _ := l.try(l.names[0], "KUBECONFIG=/etc/kubernetes/admin.conf kubectl get node "+worker+" -o jsonpath={.spec.unschedulable}")
		return text == "true"
	})
	time.Sleep(15 * time.Second) // long enough to disturb the task if it didn't wait
	assert.Equal(t, "Running", of(".status.phase"))
	l.kubectl(`-n pai-jobs patch pod task -p '{"spec":{"activeDeadlineSeconds":1}}'`)
	require.NoError(t, cmd.Wait(), "%s", out)
	t.Logf("the next run: %s\n%s", time.Since(begun).Round(time.Second), out)
	assert.Contains(t, out.String(), "waits for the end of pai-jobs/train")
	gap := c.gap()
	c.ends()
	t.Logf("the client on the worker waited at most %.1f s", gap)
	assert.Less(t, gap, 10.0)

	for i, name := range l.names {
		assert.Equal(t, release, strings.TrimSpace(l.kubectl("get node "+name+" -o jsonpath={.status.nodeInfo.kubeletVersion}")))
		if i < 3 {
			assert.Contains(t, l.from(i, "version"), "Server Version: "+release)
			l.keeps(i)
		}
	}
	assert.Contains(t, l.kubectl("-n kube-system get daemonset kube-proxy -o jsonpath={.spec.template.spec.containers[0].image}"), release)
	assert.NotContains(t, l.kubectl("get nodes"), "SchedulingDisabled")
	assert.NotContains(t, l.kubectl("get events -A --field-selector reason=NodeNotReady"), worker, "its kubelet could report all the time")
	l.isReady(4)
	assert.Zero(t, l.up(0, "--bundle", next).Changes)
	r = ok(t, upgrade...)
	assert.NotContains(t, r.stderr, "drain")
}

// nextPatch returns the version of Kubernetes in the stamped bundle.
func nextPatch(t testing.TB) string {
	t.Helper()
	v, err := utilversion.ParseSemantic(version.Kubernetes)
	require.NoError(t, err)
	return fmt.Sprintf("v%d.%d.%d", v.Major(), v.Minor(), v.Patch()+1)
}

// stamped creates a bundle next to the tests' bundle. Its Kubernetes is compiled from the same source with the version of the next patch release. So
// the test covers the steps of an upgrade, but not the changes of a release. If the files already exist, stamped uses them.
func stamped(t testing.TB) string {
	t.Helper()
	dir := strings.TrimRight(bundle, "/") + "-" + nextPatch(t)
	if _, err := os.Stat(dir); os.IsNotExist(err) {
		linkFiles(t, bundle, dir)
	}
	recipe := build.Default()
	for i := range recipe.Modules {
		if recipe.Modules[i].Name == "kubernetes" {
			recipe.Modules[i].Version = nextPatch(t)
		}
	}
	_, err := build.Run(t.Context(), build.Options{Dir: dir, Recipe: &recipe, Progress: os.Stderr})
	require.NoError(t, err)
	return dir
}

// linkFiles creates a folder with hard links to the files of another folder.
func linkFiles(t testing.TB, from, to string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		return os.Link(path, filepath.Join(to, rel))
	}))
}
