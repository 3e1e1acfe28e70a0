{{/*
What all charts of the platform share. Every chart carries this file as templates/_pai.tpl; a
test keeps the copies equal (go test ./templates -update writes them). In: the chart's values
and those under "global", which paictl fills and which a plain helm install may leave out.
*/}}

{{/* pai.name: the name of the service, of its objects and of its release. */}}
{{- define "pai.name" -}}
{{- .Chart.Name -}}
{{- end -}}

{{/* pai.selector: labels by which workloads find their pods; they never change. */}}
{{- define "pai.selector" -}}
app.kubernetes.io/name: {{ include "pai.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* pai.labels: labels of every object. */}}
{{- define "pai.labels" -}}
{{ include "pai.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | replace "+" "_" | quote }}
app.kubernetes.io/part-of: paictl
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/*
pai.podLabels: labels of every pod. The default NetworkPolicy of the namespace leaves pods that
are part of paictl to the policy of their own chart.
*/}}
{{- define "pai.podLabels" -}}
{{ include "pai.selector" . }}
app.kubernetes.io/part-of: paictl
{{- end -}}

{{/*
pai.image: the reference of an upstream image: (dict "root" $ "image" .Values.image). Where
global.imageRegistry is set it takes the place of the registry's host, as mirrors do.
*/}}
{{- define "pai.image" -}}
{{- $global := .root.Values.global | default dict -}}
{{- $repository := .image.repository -}}
{{- with $global.imageRegistry -}}
{{- $repository = printf "%s/%s" (trimSuffix "/" .) (regexReplaceAll "^[^/]*[.:][^/]*/" $repository "") -}}
{{- end -}}
{{- $repository -}}{{- with .image.tag }}:{{ . }}{{ end -}}{{- with .image.digest }}@{{ . }}{{ end -}}
{{- end -}}

{{/*
pai.ownImage: the reference of an image of paictl's own programs: (dict "root" $ "image"
.Values.image "name" "pai-watchdog"). image.repository and image.tag win over
global.ownRegistry and global.ownTag.
*/}}
{{- define "pai.ownImage" -}}
{{- $global := .root.Values.global | default dict -}}
{{- $repository := .image.repository | default (printf "%s/%s" ($global.ownRegistry | default "docker.io/openpai") .name) -}}
{{- $repository -}}:{{ .image.tag | default $global.ownTag | default .root.Chart.AppVersion }}{{- with .image.digest }}@{{ . }}{{ end -}}
{{- end -}}

{{/* pai.pullSecrets: the pod's imagePullSecrets, or nothing. */}}
{{- define "pai.pullSecrets" -}}
{{- with (.Values.global | default dict).imagePullSecrets -}}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
{{- end -}}

{{/* pai.placement: on which nodes the pods may run: nodeSelector, affinity and tolerations. */}}
{{- define "pai.placement" -}}
{{- $placement := dict -}}
{{- range $key := list "nodeSelector" "affinity" "tolerations" -}}
{{- with index $.Values $key }}{{ $_ := set $placement $key . }}{{ end -}}
{{- end -}}
{{- with $placement }}{{ toYaml . }}{{ end -}}
{{- end -}}

{{/* pai.podSecurity: the pod's security context: (dict "user" 65534). */}}
{{- define "pai.podSecurity" -}}
runAsNonRoot: true
runAsUser: {{ .user }}
runAsGroup: {{ .user }}
fsGroup: {{ .user }}
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{/* pai.containerSecurity: a container's security context. */}}
{{- define "pai.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/*
pai.access: the mounted files of the Secret that opens metrics and those who read them: (dict "root" .
"keys" (list "web.yml")); a volume. Without global.accessSecret, as in a plain helm install, there is
none, and no one is asked for a password.
*/}}
{{- define "pai.access" -}}
- name: access
  secret:
    secretName: {{ .root.Values.global.accessSecret }}
    defaultMode: 0440
    items:
      {{- range .keys }}
      - {key: {{ . }}, path: {{ . }}}
      {{- end }}
{{- end -}}

{{/* pai.accessMount: where pai.access is mounted. */}}
{{- define "pai.accessMount" -}}
- {name: access, mountPath: /etc/pai-access, readOnly: true}
{{- end -}}

{{/* pai.hasAccess: "true" where there is such a Secret, or nothing. */}}
{{- define "pai.hasAccess" -}}
{{- if (.Values.global | default dict).accessSecret }}true{{ end -}}
{{- end -}}

{{/*
pai.webProbe: a question of the kubelet to a program that asks everybody for a password: (dict "root" .
"path" "/-/ready" "port" "http"). The kubelet has none, and what stands in a pod is no secret, so that it
only connects.
*/}}
{{- define "pai.webProbe" -}}
{{- if include "pai.hasAccess" .root -}}
tcpSocket: {port: {{ .port }}}
{{- else -}}
httpGet: {path: {{ .path }}, port: {{ .port }}}
{{- end }}
{{- end -}}
