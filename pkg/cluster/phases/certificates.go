package phases

import (
	_ "embed"
	"fmt"

	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/cluster/engine"
)

// Paths of the files with which a control plane machine renews its own certificates. The renewal runs daily, and also before the kubelet starts,
// because the machine may have been off.
const (
	RenewScript = "/usr/local/libexec/paictl/renew-certificates"
	renewUnit   = "/etc/systemd/system/paictl-certificates.service"
	renewTimer  = "/etc/systemd/system/paictl-certificates.timer"
	renewBoot   = "/etc/systemd/system/paictl-certificates-boot.service"
	// renewKubelet is the drop-in that makes the kubelet wait for renewBoot.
	renewKubelet = "/etc/systemd/system/kubelet.service.d/10-paictl-certificates.conf"
)

// CertificatesScript defines the shell functions that renew certificates.
//
//go:embed scripts/certificates.sh
var CertificatesScript string

//go:embed files/renew-certificates.sh
var renewCertificates string

// RenewCertificatesService is the systemd unit that renews certificates.
//
//go:embed files/paictl-certificates.service
var RenewCertificatesService []byte

//go:embed files/paictl-certificates.timer
var renewCertificatesTimer []byte

// RenewCertificatesBoot is the systemd unit that renews certificates when a machine boots.
//
//go:embed files/paictl-certificates-boot.service
var RenewCertificatesBoot []byte

//go:embed files/paictl-certificates-kubelet.conf
var renewCertificatesKubelet []byte

// RenewProgram returns the script with which a machine renews its certificates without paictl.
func RenewProgram() []byte {
	return []byte(`#!/bin/sh
# Written by paictl.
set -eu
LC_ALL=C
export LC_ALL
PATH=${PATH:-}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
umask 077
# R is empty on a host and the root of a pretended one in tests.
R=${PAICTL_ROOT:-}

` + CertificatesScript + "\n" + renewCertificates)
}

func renewal() engine.Resources {
	return engine.Resources{
		Files: []engine.File{
			{Path: RenewScript, Mode: 0o755, Body: RenewProgram()},
			{Path: renewUnit, Mode: 0o644, Body: RenewCertificatesService},
			{Path: renewBoot, Mode: 0o644, Body: RenewCertificatesBoot},
			{Path: renewKubelet, Mode: 0o644, Body: renewCertificatesKubelet},
			{Path: renewTimer, Mode: 0o644, Body: renewCertificatesTimer},
		},
		// A change of one of these files restarts the timer, so that systemd reloads the files.
		Units: []engine.Unit{{Name: "paictl-certificates.timer", Reads: []string{renewTimer, renewUnit, renewBoot, renewKubelet}}},
	}
}

const restoreRenewal = "/etc/kubernetes"

// restorations returns the change that restores the files that an interrupted renewal has moved. It must come before all other changes, because the
// control plane may not run without these files.
func restorations(a answer.Answer) []engine.Change {
	left := a.All("aside")
	if len(left) == 0 {
		return nil
	}
	detail := left[0][0]
	if len(left) > 1 {
		detail = fmt.Sprintf("%s and %d more", detail, len(left)-1)
	}
	return []engine.Change{{Action: "restore", Target: restoreRenewal, Detail: "a renewal of certificates was interrupted: " + detail}}
}
