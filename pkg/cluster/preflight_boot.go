package cluster

import "fmt"

// checkEtcHosts warns of a cloud-init that writes /etc/hosts again at each boot: the block with
// the machines' names is gone then, until the next "cluster up".
func checkEtcHosts(s *subject) []Finding {
	row, ok := s.probe.Row("etc-hosts")
	if !ok || len(row) < 2 || row[0] != "true" && row[0] != "True" && row[0] != "template" {
		return nil
	}
	return []Finding{s.warn("etc-hosts",
		fmt.Sprintf("cloud-init writes /etc/hosts again at each boot (manage_etc_hosts: %s in %s), without the machines' names", row[0], row[1]),
		"echo 'manage_etc_hosts: false' >/etc/cloud/cloud.cfg.d/99-zz-etc-hosts.cfg")}
}

// checkSysctl warns of files that win over paictl's when the machine boots: what "cluster up" sets
// now would be lost then.
func checkSysctl(s *subject) []Finding {
	want := (&base{spec: s.spec}).resources().sysctls
	var out []Finding
	for _, row := range s.seen.sections[phaseBase].All("later") {
		if len(row) < 3 || row[1] == want[row[0]] {
			continue
		}
		out = append(out, s.warn("sysctl",
			fmt.Sprintf("%s sets %s to %s at the next boot; the cluster needs %s", row[2], row[0], row[1], want[row[0]]),
			fmt.Sprintf("remove the line from %s: it is read after %s", row[2], sysctlFile)))
	}
	return out
}
