package doctor

import (
	"context"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/openpai/paictl/pkg/diagnose/checks"
)

func diskChecks() []*Check {
	return []*Check{
		{
			ID: "disk-space", Group: "machines", Title: "Disks have free space", Needs: Machines,
			Examines: "the file systems of /, the kubelet, containerd, etcd, logs, the data path and volumes; a warning below 10 % free, a problem below 5 %",
			Run:      roomOf("disk"),
		},
		{
			ID: "inodes", Group: "machines", Title: "Disks have free inodes", Needs: Machines,
			Examines: "free inodes of the same file systems, with the same limits",
			Run:      roomOf("inodes"),
		},
	}
}

// roomOf returns a check for nearly full file systems of machines. The argument is "disk" for space, or "inodes".
func roomOf(what string) func(context.Context, *Cluster) ([]Finding, error) {
	return func(_ context.Context, c *Cluster) (out []Finding, _ error) {
		for _, m := range c.machines() {
			for _, fs := range checks.Filesystems(m.all("fs", 7)) {
				for _, f := range fs.CheckSpace() {
					if f.Check == what {
						f.Host = m.Hostname
						out = append(out, found(f))
					}
				}
			}
		}
		return out, nil
	}
}

// quantityKiB parses a quantity of memory in KiB. It returns 0 if s isn't a quantity.
func quantityKiB(s string) int64 {
	q, err := resource.ParseQuantity(s)
	if err != nil {
		return 0
	}
	return q.Value() >> 10
}
