// Package providertest runs real sign-in providers for tests: OpenLDAP's slapd, and Dex as an issuer of OpenID Connect that uses the slapd
// directory. In: the system's slapd, and the Dex program that "sh hack/dex.sh" builds. Out: the providers' addresses, and functions that change the
// people in the directory.
package providertest

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-ldap/ldap/v3"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/test/tier"
)

// Base is the root of the directory. AdminDN and AdminPassword are the credentials of the directory's administrator. Password is the password of all
// people in the directory.
const (
	Base          = "dc=example,dc=org"
	AdminDN       = "cn=admin," + Base
	AdminPassword = "the directory's own"
	Password      = "hunter2 of the lab"
)

// Directory is a running OpenLDAP server. It contains the people kim, lee and *)(uid=*, and the groups ai-team (kim, lee) and operators (kim).
type Directory struct {
	// URL is the address for StartTLS. TLS is the address with TLS.
	URL, TLS string
	// CA is the PEM certificate of the directory's CA. CAFile is a file with the same certificate.
	CA, CAFile string

	t       testing.TB
	folder  string
	process *exec.Cmd
	log     *bytes.Buffer
}

// tree is the initial content of the directory.
const tree = `dn: dc=example,dc=org
objectClass: dcObject
objectClass: organization
o: example
dc: example

dn: ou=people,dc=example,dc=org
objectClass: organizationalUnit
ou: people

dn: ou=groups,dc=example,dc=org
objectClass: organizationalUnit
ou: groups

dn: uid=kim,ou=people,dc=example,dc=org
objectClass: inetOrgPerson
uid: kim
cn: Kim Kimsen
sn: Kimsen
mail: kim@example.org
userPassword: hunter2 of the lab

dn: uid=lee,ou=people,dc=example,dc=org
objectClass: inetOrgPerson
uid: lee
cn: Lee Leesen
sn: Leesen
mail: lee@example.org
userPassword: hunter2 of the lab

dn: uid=\2A\29\28uid\3D\2A,ou=people,dc=example,dc=org
objectClass: inetOrgPerson
uid: *)(uid=*
cn: Strange
sn: Strange
userPassword: hunter2 of the lab

dn: cn=ai-team,ou=groups,dc=example,dc=org
objectClass: groupOfNames
cn: ai-team
member: uid=kim,ou=people,dc=example,dc=org
member: uid=lee,ou=people,dc=example,dc=org

dn: cn=operators,ou=groups,dc=example,dc=org
objectClass: groupOfNames
cn: operators
member: uid=kim,ou=people,dc=example,dc=org
`

const configuration = `include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
pidfile %[1]s/pid
TLSCACertificateFile %[1]s/cert.pem
TLSCertificateFile %[1]s/cert.pem
TLSCertificateKeyFile %[1]s/key.pem
security simple_bind=64
database mdb
suffix "dc=example,dc=org"
rootdn "cn=admin,dc=example,dc=org"
rootpw "the directory's own"
directory %[1]s/data
maxsize 8388608
access to attrs=userPassword by anonymous auth by * none
access to * by dn.exact="cn=admin,dc=example,dc=org" read by * none
`

// program returns the path of an OpenLDAP program, which may be outside the PATH. It skips the test if OpenLDAP isn't installed.
func program(t testing.TB, name string) string {
	t.Helper()
	tier.More(t, "a real directory")
	for _, folder := range []string{"/usr/sbin", "/usr/local/sbin", "/sbin"} {
		if _, err := os.Stat(filepath.Join(folder, name)); err == nil {
			return filepath.Join(folder, name)
		}
	}
	t.Skip("it needs a real directory: install Debian's package slapd (sh hack/packages.sh test)")
	return ""
}

// Slapd starts a directory, which stops at the end of the test. It skips the test if OpenLDAP isn't installed.
func Slapd(t testing.TB) *Directory {
	t.Helper()
	add := program(t, "slapadd")
	d := &Directory{t: t, folder: t.TempDir(), log: &bytes.Buffer{}}
	require.NoError(t, os.Mkdir(d.folder+"/data", 0o700))
	d.CAFile = d.folder + "/cert.pem"
	d.CA = certify(t, d.CAFile, d.folder+"/key.pem")
	require.NoError(t, os.WriteFile(d.folder+"/slapd.conf", fmt.Appendf(nil, configuration, d.folder), 0o600))
	fill := exec.CommandContext(t.Context(), add, "-f", d.folder+"/slapd.conf")
	fill.Stdin = bytes.NewBufferString(tree)
	out, err := fill.CombinedOutput()
	require.NoError(t, err, string(out))
	d.URL, d.TLS = "ldap://"+Free(t), "ldaps://"+Free(t)
	d.Start()
	t.Cleanup(func() {
		d.Stop()
		if t.Failed() {
			t.Log(d.log.String())
		}
	})
	return d
}

// Start starts the directory, also after Stop.
func (d *Directory) Start() {
	d.t.Helper()
	d.process = exec.CommandContext(context.WithoutCancel(d.t.Context()), program(d.t, "slapd"), "-d", "0", "-f", d.folder+"/slapd.conf", "-h", d.URL+"/ "+d.TLS+"/")
	d.process.Stdout, d.process.Stderr = d.log, d.log
	require.NoError(d.t, d.process.Start())
	require.Eventually(d.t, func() bool {
		c, err := d.dial()
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}, time.Minute, 20*time.Millisecond, "slapd answers")
}

// Stop makes the directory unavailable.
func (d *Directory) Stop() {
	if d.process == nil {
		return
	}
	_ = d.process.Process.Kill()
	_ = d.process.Wait()
	d.process = nil
}

func (d *Directory) dial() (*ldap.Conn, error) {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(d.CA))
	return ldap.DialURL(d.TLS, ldap.DialWithTLSConfig(&tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}))
}

// Do calls change with a connection that is bound as the directory's administrator.
func (d *Directory) Do(change func(*ldap.Conn) error) {
	d.t.Helper()
	c, err := d.dial()
	require.NoError(d.t, err)
	defer func() { _ = c.Close() }()
	require.NoError(d.t, c.Bind(AdminDN, AdminPassword))
	require.NoError(d.t, change(c))
}

// PersonDN returns the DN of a person.
func PersonDN(uid string) string { return "uid=" + uid + ",ou=people," + Base }

// Leave removes a person from a group.
func (d *Directory) Leave(group, uid string) {
	d.t.Helper()
	d.Do(func(c *ldap.Conn) error {
		m := ldap.NewModifyRequest("cn="+group+",ou=groups,"+Base, nil)
		m.Delete("member", []string{PersonDN(uid)})
		return c.Modify(m)
	})
}

// Join adds a person to a group.
func (d *Directory) Join(group, uid string) {
	d.t.Helper()
	d.Do(func(c *ldap.Conn) error {
		m := ldap.NewModifyRequest("cn="+group+",ou=groups,"+Base, nil)
		m.Add("member", []string{PersonDN(uid)})
		return c.Modify(m)
	})
}

// UUID returns the entryUUID of a person.
func (d *Directory) UUID(uid string) (out string) {
	d.t.Helper()
	d.Do(func(c *ldap.Conn) error {
		got, err := c.Search(ldap.NewSearchRequest(PersonDN(uid), ldap.ScopeBaseObject, ldap.NeverDerefAliases, 1, 0, false, "(objectClass=*)", []string{"entryUUID"}, nil))
		if err == nil {
			out = got.Entries[0].GetAttributeValue("entryUUID")
		}
		return err
	})
	return out
}

// Remove removes a person from the directory.
func (d *Directory) Remove(uid string) {
	d.t.Helper()
	d.Do(func(c *ldap.Conn) error { return c.Del(ldap.NewDelRequest(PersonDN(uid), nil)) })
}

// Host is the IP address on which the providers listen. The default is loopback. A test with other machines sets an address that they can reach.
var Host = "127.0.0.1"

// Free returns an address at Host with an unused port.
func Free(t testing.TB) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", Host+":0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// certify writes a self-signed certificate for Host, and its key, to two files. It returns the certificate as PEM.
func certify(t testing.TB, cert, key string) string {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	form := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.ParseIP(Host)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	public, err := x509.CreateCertificate(rand.Reader, form, form, private.Public(), private)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: public})
	require.NoError(t, os.WriteFile(cert, text, 0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600))
	return string(text)
}
