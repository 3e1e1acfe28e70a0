{{/*
storage.localKey: the identity of a local volume. Kubernetes refuses to change any of
it later, so names of objects contain its hash: a different folder is a different volume.
*/}}
{{- define "storage.localKey" -}}
{{- printf "%s|%s|%s|%s" .namespace .claim .node .path | sha256sum | trunc 10 -}}
{{- end -}}

{{/* storage.localName: short enough that paictl can name a Job after it. */}}
{{- define "storage.localName" -}}
{{- printf "pai-%s-%s" (.claim | replace "." "-" | trunc 30 | trimSuffix "-") (include "storage.localKey" .) -}}
{{- end -}}

{{/* storage.localLabels: labels by which paictl finds the objects of a claim. */}}
{{- define "storage.localLabels" -}}
paictl.openpai.org/volume: {{ include "storage.localName" . }}
{{- with .service }}
paictl.openpai.org/service: {{ . }}
{{- end }}
{{- end -}}

{{/* storage.pod: the pod that makes the folder of (dict "root" $ "volume" ...). */}}
{{- define "storage.pod" -}}
{{- $values := .root.Values -}}
{{- $parent := dir .volume.path -}}
metadata:
  labels:
    {{- include "pai.podLabels" .root | nindent 4 }}
    {{- include "storage.localLabels" .volume | nindent 4 }}
spec:
  restartPolicy: OnFailure
  automountServiceAccountToken: false
  enableServiceLinks: false
  priorityClassName: {{ $values.priorityClassName }}
  {{- include "pai.pullSecrets" .root | nindent 2 }}
  nodeSelector:
    kubernetes.io/hostname: {{ .volume.node | quote }}
  tolerations:
    - operator: Exists
  # Root, because the folder lies in one that belongs to root, and is given to another user.
  securityContext:
    runAsUser: 0
    runAsGroup: 0
    seccompProfile:
      type: RuntimeDefault
  containers:
    - name: prepare
      image: {{ include "pai.ownImage" (dict "root" .root "image" $values.image "name" "pai-volume") }}
      imagePullPolicy: {{ $values.image.pullPolicy }}
      args:
        - prepare
        - --root=/host
        - --owner={{ int64 .volume.owner }}
        # What the kubelet gives a volume for a pod's fsGroup: with the same, it has nothing to
        # change and need not walk through all files.
        - --mode=2770
        - {{ .volume.path | quote }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
          # Give the folder away, set its mode with the group's bit, and pass through folders
          # of others on the way to it.
          add: [CHOWN, FOWNER, FSETID, DAC_OVERRIDE]
      resources: {{- toYaml $values.resources | nindent 8 }}
      volumeMounts:
        - name: parent
          mountPath: /host{{ $parent }}
  volumes:
    - name: parent
      # hostPath: the volume is a folder of the machine, and must exist before it can be
      # mounted; only the folder around it is visible here.
      hostPath:
        path: {{ $parent | quote }}
        type: DirectoryOrCreate
{{- end -}}
