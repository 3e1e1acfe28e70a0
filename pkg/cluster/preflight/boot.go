package preflight

import (
	"fmt"

	"github.com/openpai/paictl/pkg/cluster/paths"
	"github.com/openpai/paictl/pkg/diagnose/checks"
)

// checkEtcHosts warns if cloud-init rewrites /etc/hosts at each boot. Such a rewrite removes the machines' names until the next "cluster up".
func checkEtcHosts(s *Host) []Finding {
	row, ok := s.Probe.Row("etc-hosts")
	if !ok || len(row) < 2 || row[0] != "true" && row[0] != "True" && row[0] != "template" {
		return nil
	}
	return []Finding{s.warn("etc-hosts",
		fmt.Sprintf("cloud-init rewrites /etc/hosts at each boot (manage_etc_hosts: %s in %s), without the machines' names", row[0], row[1]),
		"echo 'manage_etc_hosts: false' >/etc/cloud/cloud.cfg.d/99-zz-etc-hosts.cfg")}
}

func checkSysctl(s *Host) []Finding {
	return checks.Overridden(s.Later, s.Cluster.Sysctls, paths.Sysctl)
}
