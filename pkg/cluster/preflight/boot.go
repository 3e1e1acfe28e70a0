package preflight

import (
	"fmt"

	"github.com/openpai/paictl/pkg/cluster/paths"
)

// checkEtcHosts warns of a cloud-init that rewrites /etc/hosts at each boot: the block with the
// machines' names is missing then, until the next "cluster up".
func checkEtcHosts(s *Host) []Finding {
	row, ok := s.Probe.Row("etc-hosts")
	if !ok || len(row) < 2 || row[0] != "true" && row[0] != "True" && row[0] != "template" {
		return nil
	}
	return []Finding{s.warn("etc-hosts",
		fmt.Sprintf("cloud-init rewrites /etc/hosts at each boot (manage_etc_hosts: %s in %s), without the machines' names", row[0], row[1]),
		"echo 'manage_etc_hosts: false' >/etc/cloud/cloud.cfg.d/99-zz-etc-hosts.cfg")}
}

// checkSysctl warns of files that win over paictl's when the machine boots: the values that
// "cluster up" sets now would be lost then.
func checkSysctl(s *Host) []Finding {
	var out []Finding
	for _, x := range s.Later {
		want := s.Cluster.Sysctls[x.Name]
		if x.Value == want {
			continue
		}
		out = append(out, s.warn("sysctl",
			fmt.Sprintf("%s sets %s to %s at the next boot; the cluster needs %s", x.File, x.Name, x.Value, want),
			fmt.Sprintf("remove the line from %s: it is read after %s", x.File, paths.Sysctl)))
	}
	return out
}
