<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
  <!-- Items by price, each with its tags as one text. -->
  <xsl:output method="xml" indent="yes"/>
  <xsl:template match="/items">
    <list>
      <xsl:for-each select="item[@owner &lt; 150]">
        <xsl:sort select="price" data-type="number"/>
        <entry name="{@name}">
          <xsl:for-each select="tag"><xsl:value-of select="concat(., ' ')"/></xsl:for-each>
        </entry>
      </xsl:for-each>
    </list>
  </xsl:template>
</xsl:stylesheet>
