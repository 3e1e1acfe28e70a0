package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/pkg/version"
	"github.com/openpai/paictl/test/runnable"
)

func newBundle(t testing.TB) *bundle.Bundle {
	t.Helper()
	return newBundleOf(t, version.Kubernetes, "")
}

// newBundleOf returns a bundle of a release of Kubernetes. Bundles with different builds contain different files.
func newBundleOf(t testing.TB, release, build string) *bundle.Bundle {
	t.Helper()
	dir := t.TempDir()
	m := bundle.Manifest{APIVersion: bundle.APIVersion, Kind: bundle.ManifestKind, Kubernetes: release, Arch: "amd64", Origin: bundle.OriginBuild}
	add := func(kind, name, image string, roles ...string) {
		a := bundle.Artifact{Name: name, Version: "v1", Kind: kind, Path: bundle.PathOf(kind, name), Source: "test", Roles: roles}
		text := "#!/bin/sh\n# " + name + "\n"
		if name == "kubelet" {
			text += "[ \"$*\" != --version ] || echo Kubernetes " + release + "\n"
		}
		if build != "" {
			text += "# build " + build + "\n"
		}
		if kind == bundle.KindImage {
			a.Image, a.Digest = image, "sha256:"+engine.Hash([]byte(name))
			text = fmt.Sprintf("ref %s\ndigest %s\n", a.Image, a.Digest)
		}
		a.SHA256, a.Size = engine.Hash([]byte(text)), int64(len(text))
		file := filepath.Join(dir, filepath.FromSlash(a.Path))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		runnable.Write(t, file, text)
		m.Artifacts = append(m.Artifacts, a)
	}
	for _, name := range []string{"containerd", "containerd-shim-runc-v2", "ctr", "runc", "crictl", "kubelet", "kubeadm", "kubectl", "pai-api-proxy"} {
		add(bundle.KindBinary, name, "")
	}
	for _, name := range []string{"bridge", "host-local", "loopback", "portmap"} {
		add(bundle.KindCNIPlugin, name, "")
	}
	k8s := "registry.k8s.io/"
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		add(bundle.KindImage, name, k8s+name+":"+release, "master")
	}
	etcd := "3.6.1-0"
	if release >= "v1.37" {
		etcd = "3.7.0-0"
	}
	add(bundle.KindImage, "etcd", k8s+"etcd:"+etcd, "master")
	add(bundle.KindImage, "kube-proxy", k8s+"kube-proxy:"+release)
	add(bundle.KindImage, "pause", k8s+"pause:3.10.1")
	add(bundle.KindImage, "coredns", k8s+"coredns/coredns:v1.12.1")
	add(bundle.KindImage, "pai-csr-approver", bundle.OwnRegistry+"/pai-csr-approver:v1", "master")
	add(bundle.KindImage, "pai-api-vip", bundle.OwnRegistry+"/pai-api-vip:v1", "master")
	add(bundle.KindImage, "flannel", "ghcr.io/flannel-io/flannel:v0.27.0")
	text, err := yaml.Marshal(m)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, bundle.ManifestFile), text, 0o644))
	b, err := bundle.Open(dir)
	require.NoError(t, err)
	return b
}

// makeAuthorities writes real CA certificates for the clusters that "kubeadm init" creates in a test. Each init uses the next certificate, because
// the real kubeadm creates a new CA each time.
func makeAuthorities(t testing.TB, dir string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	write := func(name string, b []byte) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), b, 0o644))
	}
	write("current", []byte("0\n"))
	for i := 1; i <= 6; i++ {
		c := &x509.Certificate{
			SerialNumber: big.NewInt(int64(i)), Subject: pkix.Name{CommonName: "kubernetes"}, IsCA: true, BasicConstraintsValid: true,
			NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		}
		if i > 1 {
			key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
			require.NoError(t, err)
		}
		der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
		require.NoError(t, err)
		text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
		write(fmt.Sprintf("%d.crt", i), text)
		sum, err := phases.PublicKeyHash(text)
		require.NoError(t, err)
		write(fmt.Sprintf("%d.hash", i), []byte(sum))
	}
}
