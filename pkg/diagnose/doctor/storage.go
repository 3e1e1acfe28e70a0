package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/cluster/shell"
	"github.com/openpai/paictl/pkg/runtime/rules"
)

func storageChecks() []*Check {
	return []*Check{
		{
			ID: "mounts", Group: "storage", Title: "All file systems of /etc/fstab are mounted", Needs: Machines,
			Examines: "each line of /etc/fstab that is mounted at boot, and the file systems that are mounted now",
			Run:      mounts,
		},
		{
			ID: "network-mounts", Group: "storage", Title: "File servers answer", Needs: Machines,
			Examines: "each file system of a server (NFS, Ceph, Lustre, SMB) that is mounted on a machine, pods' included: it must answer within 5 s",
			Run:      networkMounts,
		},
		{
			ID: "volume-folders", Group: "storage", Title: "Folders of volumes exist", Needs: Machines | API,
			Examines: "the folder of each bound PersistentVolume that is stored on one machine",
			Run:      volumeFolders,
		},
		{
			ID: "claims-bound", Group: "storage", Title: "Claims have their volumes", Needs: API,
			Examines: "PersistentVolumeClaims that aren't Bound and that a pod waits for, and volumes that have failed",
			Run:      claimsBound,
		},
	}
}

func mounts(_ context.Context, c *Cluster) (out []Finding, _ error) {
	for _, m := range c.machines() {
		for _, row := range m.all("fstab", 4) {
			if row[3] == "no" {
				out = append(out, problem(m.Hostname, fmt.Sprintf("on the machine: mount %s; if that fails, check the disk or the server. First check that nothing was written into the folder below it", shell.Word(row[0])),
					"%s isn't mounted: data written there goes to the disk below it", row[0]).seen(fmt.Sprintf("/etc/fstab has %s (%s, %s)", row[0], row[1], row[2])))
			}
		}
	}
	return out, nil
}

func networkMounts(_ context.Context, c *Cluster) (out []Finding, _ error) {
	for _, m := range c.machines() {
		for _, row := range m.all("netmount", 3) {
			if row[2] == "hangs" {
				out = append(out, problem(m.Hostname, "check whether its server is up and reachable from the machine; if it is gone permanently: umount -f -l "+shell.Word(row[0]),
					"%s (%s) doesn't answer: programs that use it hang", row[0], row[1]))
			}
		}
	}
	return out, nil
}

func volumeFolders(ctx context.Context, c *Cluster) (out []Finding, _ error) {
	list, err := c.Kube.Client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the volumes: %w", err)
	}
	at := map[string]*machine{}
	for _, m := range c.machines() {
		at[m.Hostname] = m
	}
	looked := 0
	for i := range list.Items {
		v := &list.Items[i]
		node, folder := localVolume(v)
		if m := at[node]; m != nil {
			state := m.value("volume", folder)
			if state != "" {
				looked++
			}
			if state == "absent" {
				out = append(out, problem(node, "see whether its disk is mounted (paictl doctor --only mounts); if it is lost permanently, create it on the machine, with the owner that docs/storage.md names",
					"the folder %s of the volume %s is missing: pods with the claim %s don't start", folder, v.Name, claimOf(v)))
			}
		}
	}
	if looked == 0 && len(out) == 0 {
		return skip("no volume is on one of the machines"), nil
	}
	return out, nil
}

func claimOf(v *corev1.PersistentVolume) string {
	if v.Spec.ClaimRef == nil {
		return "(none)"
	}
	return v.Spec.ClaimRef.Namespace + "/" + v.Spec.ClaimRef.Name
}

// claimPatience is how long a claim may wait for its volume before the doctor reports it.
const claimPatience = 2 * time.Minute

func claimsBound(ctx context.Context, c *Cluster) (out []Finding, _ error) {
	claims, err := c.Kube.Client.CoreV1().PersistentVolumeClaims(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the claims: %w", err)
	}
	pods, err := c.AllPods(ctx)
	if err != nil {
		return nil, err
	}
	used := map[string]string{} // by namespace/claim, a pod that waits for it
	for i := range pods {
		for _, v := range pods[i].Spec.Volumes {
			if v.PersistentVolumeClaim != nil {
				used[pods[i].Namespace+"/"+v.PersistentVolumeClaim.ClaimName] = pods[i].Name
			}
		}
	}
	for i := range claims.Items {
		p := &claims.Items[i]
		name := p.Namespace + "/" + p.Name
		switch {
		case p.Status.Phase == corev1.ClaimLost:
			out = append(out, problem(name, "restore its volume from its backup, or delete the claim: its data is gone", "the claim has lost its volume"))
		case p.Status.Phase == corev1.ClaimPending && used[name] != "" && c.Now().Sub(p.CreationTimestamp.Time) > claimPatience:
			out = append(out, problem(name, fmt.Sprintf("see why: kubectl -n %s describe pvc %s", p.Namespace, p.Name), "the claim has no volume, and the pod %s waits for it", used[name]))
		}
	}
	volumes, err := c.Kube.Client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the volumes: %w", err)
	}
	for i := range volumes.Items {
		if v := &volumes.Items[i]; v.Status.Phase == corev1.VolumeFailed {
			out = append(out, warning(v.Name, "look at its message, then delete it when its data isn't needed", "the volume has failed").seen(strings.TrimSpace(rules.WithTerm(v.Status.Reason)+" "+v.Status.Message)))
		}
	}
	return out, nil
}
