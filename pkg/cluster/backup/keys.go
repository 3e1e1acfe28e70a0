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

// authorities are the CAs of KeyFiles: each has a certificate, or two while it is rotated, and a key.
var authorities = []string{"etc/kubernetes/pki/ca", "etc/kubernetes/pki/etcd/ca", "etc/kubernetes/pki/front-proxy-ca"}

// longestKey limits the number of bytes that are read of each file.
const longestKey = 1 << 20

// StillTheKeys returns an error if the keys, in the format of PartKeys, changed between the readings before and after etcd's database was
// read: Secrets in the database may then be encrypted with a key that the backup doesn't have.
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

// CheckAuthorities returns an error if a CA's key, in the format of PartKeys, doesn't belong to any of its certificates: a cluster can't be created
// from such keys.
func CheckAuthorities(keys []byte) error {
	files, err := keysIn(keys)
	if err != nil {
		return err
	}
	_, err = ownCertificates(files)
	return err
}

// OneCertificateEach returns keys, in the format of PartKeys, with only one certificate for each CA: the certificate of its key. If a backup is
// made while CAs are rotated, a file has two certificates, and their order doesn't show which key is in use; kube-controller-manager accepts only
// one.
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

// ownCertificates returns the certificates that belong to the CAs' keys, by the names of their files. It omits a CA without a certificate, because
// another check detects missing files.
func ownCertificates(files map[string]string) (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, name := range authorities {
		certs, ok := files[name+".crt"]
		if !ok {
			continue
		}
		own, err := pki.Own([]byte(certs), []byte(files[name+".key"]))
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
