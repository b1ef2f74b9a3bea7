{{- define "gateway.probe" -}}
httpGet: {path: {{ last . }}, port: web{{ if (first .).Values.web.tls }}, scheme: HTTPS{{ end }}}
{{- end }}

{{- define "gateway.container" -}}
- name: gateway
  image: {{ .Values.images.gateway }}
  {{- if and .Values.sidecar.native .Values.application.containers }}
  restartPolicy: Always  # a native sidecar: starts before the application, stops after it
  {{- end }}
  args: [run, /etc/gateway, --log-format, json, --watch, /etc/gateway, --watch, /run/secrets/gateway]
  env:
    - name: POD_NAME
      valueFrom: {fieldRef: {fieldPath: metadata.name}}
    - {name: ARCHIVE, value: {{ include "gateway.archive" . | quote }}}
    {{- with .Values.env }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  envFrom:
    - configMapRef: {name: {{ include "gateway.hosts" . }}}
    {{- with .Values.envFrom }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  ports:
    - {name: web, containerPort: 8047}
  startupProbe:          # the process only: a disconnected broker does not block the start
    {{- include "gateway.probe" (list . "/healthz") | nindent 4 }}
    periodSeconds: 1
    failureThreshold: 60
  livenessProbe:
    {{- include "gateway.probe" (list . "/healthz") | nindent 4 }}
    periodSeconds: 10
    timeoutSeconds: 3
  readinessProbe:        # of the whole pod: an outage at the far end must not stop a rollout
    {{- include "gateway.probe" (list . .Values.sidecar.readinessPath) | nindent 4 }}
    periodSeconds: 5
    timeoutSeconds: 3
  resources:
    {{- toYaml .Values.sidecar.resources | nindent 4 }}
  securityContext:
    {{- include "gateway.hardened" . | nindent 4 }}
  volumeMounts:
    - {name: settings, mountPath: /etc/gateway, readOnly: true}
    - {name: secrets, mountPath: /run/secrets/gateway, readOnly: true}
    - {name: state, mountPath: /var/lib/gateway}
    - {name: scratch, mountPath: /tmp}
    {{- if .Values.standby.enabled }}
    - {name: account, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}
    {{- end }}
    {{- with .Values.sidecar.mounts }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}
