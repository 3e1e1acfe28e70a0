package backup

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"

	"github.com/openpai/paictl/pkg/cluster/pki"
	"github.com/openpai/paictl/pkg/hint"
)

// authorities lists the CAs whose files are in KeyFiles. Each CA has a key and a certificate. During a CA rotation, it has two certificates.
var authorities = []string{"etc/kubernetes/pki/ca", "etc/kubernetes/pki/etcd/ca", "etc/kubernetes/pki/front-proxy-ca"}

// longestKey is the maximum size of a file in PartKeys, in bytes.
const longestKey = 1 << 20

// StillTheKeys returns an error if the keys have changed while etcd's database was copied. Secrets in the database may then be encrypted with a key
// that the backup doesn't contain. Both arguments are in the format of PartKeys.
func StillTheKeys(before, after []byte) error {
	was, err := keysIn(before)
	if err != nil {
		return err
	}
	is, err := keysIn(after)
	if err != nil {
		return err
	}
	if maps.Equal(was, is) {
		return nil
	}
	return hint.Errorf("make it again when the rotation of secrets or certificates has finished", "the cluster's keys changed while it was saved: the backup might be unreadable")
}

// CheckAuthorities returns an error if a CA's key doesn't belong to any of its certificates. Such keys can't create a cluster. The argument keys is
// in the format of PartKeys.
func CheckAuthorities(keys []byte) error {
	files, err := keysIn(keys)
	if err != nil {
		return err
	}
	_, err = ownCertificates(files)
	return err
}

// OneCertificateEach returns a copy of keys in which each CA has only the certificate that belongs to its key. If a backup was made during a CA
// rotation, a file contains two certificates in any order, but kube-controller-manager accepts only one certificate. The argument keys is in the
// format of PartKeys.
func OneCertificateEach(keys []byte) ([]byte, error) {
	files, err := keysIn(keys)
	if err != nil {
		return nil, err
	}
	own, err := ownCertificates(files)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	in, to := tar.NewReader(bytes.NewReader(keys)), tar.NewWriter(&out)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		text := []byte(files[h.Name])
		if cert, ok := own[h.Name]; ok {
			text = cert
		}
		if err == nil {
			err = to.WriteHeader(&tar.Header{Name: h.Name, Mode: h.Mode, Size: int64(len(text))})
		}
		if err == nil {
			_, err = to.Write(text)
		}
		if err != nil {
			return nil, fmt.Errorf("write the cluster's keys: %w", err)
		}
	}
	if err := to.Close(); err != nil {
		return nil, fmt.Errorf("write the cluster's keys: %w", err)
	}
	return out.Bytes(), nil
}

// ownCertificates returns the certificate that belongs to each CA's key, by the name of the certificate's file. It omits a CA without a certificate,
// because another check reports missing files.
func ownCertificates(files map[string]string) (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, name := range authorities {
		certs, ok := files[name+".crt"]
		if !ok {
			continue
		}
		own, err := pki.CertificateOf([]byte(certs), []byte(files[name+".key"]))
		if err != nil {
			return nil, hint.Errorf("compare them on all masters: openssl x509 -noout -pubkey -in /"+name+".crt; openssl pkey -pubout -in /"+name+".key",
				"/%[1]s.crt and /%[1]s.key don't belong together, and no cluster can be restored from them: %w", name, err)
		}
		out[name+".crt"] = pki.Encode(own)
	}
	return out, nil
}

func keysIn(archive []byte) (map[string]string, error) {
	out, in := map[string]string{}, tar.NewReader(bytes.NewReader(archive))
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the cluster's keys: %w", err)
		}
		text, err := io.ReadAll(io.LimitReader(in, longestKey+1))
		if err != nil {
			return nil, fmt.Errorf("read the cluster's keys: %w", err)
		}
		if len(text) > longestKey {
			return nil, fmt.Errorf("read the cluster's keys: %s has more than %d bytes", h.Name, longestKey)
		}
		out[h.Name] = string(text)
	}
}
