package cluster

import (
	_ "embed"
	"fmt"

	"github.com/openpai/paictl/pkg/cluster/answer"
)

// Each control plane machine renews its certificates by itself: daily, and before the
// kubelet of a machine that was off starts.
const (
	renewScript = "/usr/local/libexec/paictl/renew-certificates"
	renewUnit   = "/etc/systemd/system/paictl-certificates.service"
	renewTimer  = "/etc/systemd/system/paictl-certificates.timer"
	renewBoot   = "/etc/systemd/system/paictl-certificates-boot.service"
	// renewKubelet makes the kubelet wait for renewBoot.
	renewKubelet = "/etc/systemd/system/kubelet.service.d/10-paictl-certificates.conf"
)

//go:embed scripts/certificates.sh
var certificatesScript string

//go:embed files/renew-certificates.sh
var renewCertificates string

//go:embed files/paictl-certificates.service
var renewCertificatesService []byte

//go:embed files/paictl-certificates.timer
var renewCertificatesTimer []byte

//go:embed files/paictl-certificates-boot.service
var renewCertificatesBoot []byte

//go:embed files/paictl-certificates-kubelet.conf
var renewCertificatesKubelet []byte

// renewProgram returns the script that renews certificates on a machine without paictl.
func renewProgram() []byte {
	return []byte(`#!/bin/sh
# Written by paictl.
set -eu
LC_ALL=C
export LC_ALL
PATH=${PATH:-}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
umask 077
# R is empty on a host and the root of a pretended one in tests.
R=${PAICTL_ROOT:-}

` + certificatesScript + "\n" + renewCertificates)
}

// renewal returns the resources that renew certificates on a control plane machine.
func renewal() resources {
	return resources{
		files: []file{
			{path: renewScript, mode: 0o755, body: renewProgram()},
			{path: renewUnit, mode: 0o644, body: renewCertificatesService},
			{path: renewBoot, mode: 0o644, body: renewCertificatesBoot},
			{path: renewKubelet, mode: 0o644, body: renewCertificatesKubelet},
			{path: renewTimer, mode: 0o644, body: renewCertificatesTimer},
		},
		// If one of the files changes, the restart of the timer has systemd read it.
		units: []unit{{name: "paictl-certificates.timer", reads: []string{renewTimer, renewUnit, renewBoot, renewKubelet}}},
	}
}

const restoreRenewal = "/etc/kubernetes"

// restorations returns the change that puts back the files that an interrupted renewal of
// certificates left. It comes before all other changes: without it the control plane may stay down.
func restorations(a answer.Answer) []Change {
	left := a.All("aside")
	if len(left) == 0 {
		return nil
	}
	detail := left[0][0]
	if len(left) > 1 {
		detail = fmt.Sprintf("%s and %d more", detail, len(left)-1)
	}
	return []Change{{Action: "restore", Target: restoreRenewal, Detail: "a renewal of certificates was interrupted: " + detail}}
}
